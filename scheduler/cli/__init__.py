"""The operator's commands: ``nova-scheduler-manage``.

``app`` lists the commands; each is in the module of its subject.  ``program`` and ``command`` are
the bases, ``bus`` asks running workers, ``request_options`` makes a request of arguments.
Commands may import any room; only ``cmd`` and the conductor stub import this one.
"""
