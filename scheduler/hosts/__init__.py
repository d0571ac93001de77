"""The host table in columns, kept fresh, and the reservations on its rows.

``host_manager`` reads and applies changes; ``candidates`` is what decisions see of the table;
``host_state`` shows one row under Nova's names.  Imports ``db`` readers, ``numa``, ``pci`` and
``objects``; nothing of ``engine``, ``drivers``, ``claims`` or ``rpc``.
"""
