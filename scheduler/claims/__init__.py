"""Claims: no host is given to two requests at once, as ``[scheduler] claims`` says.

``backend`` is the interface that drivers call, and the back end none; ``database`` and
``placement`` are the others, ``loading`` finds the configured one.  ``audit`` compares.  Drivers,
the daemon, the CLI and the conductor stub may import this.
Why the protocol in the database is right: docs/decisions/0007.
"""
