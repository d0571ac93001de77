"""Claims: no host is given to two requests at once, as ``[scheduler] claims`` says.

``backend`` is the interface that drivers call, and the back end none; ``database`` and
``placement`` are the others, ``loading`` finds the configured one.  In a database ``writer`` makes
claims, ``reader`` reads those of all schedulers, ``shared_reservations`` subtracts them from hosts
and ``recovery`` follows a database that went back.  ``audit`` compares.  Drivers,
the daemon, the CLI and the conductor stub may import this.
Why the protocol in the database is right: docs/decisions/0007.
"""
