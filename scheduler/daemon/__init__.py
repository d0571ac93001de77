"""The life of a program's processes: checks, start, workers, reload, SIGTERM, sd_notify, health.

``service`` is what ``nova-scheduler`` runs, and puts one worker together; ``worker`` is the life of
any worker.  Entry points, the command line and the stubs may import this package;
``worker_table`` knows no other room, and every room may import it.
"""
