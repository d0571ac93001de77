"""The operator's commands: ``nova-scheduler-manage``.

``app`` lists the commands; each is a function or a class in the module of its subject.
``command`` has the bases, and ``bus`` asks running workers.
Commands may import any room; only ``cmd`` and the conductor stub import this one.
"""
