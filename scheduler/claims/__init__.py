"""Who may book a host, and how nobody books it twice: ``[scheduler] claims``.

What belongs here is the seam that drivers and the conductor stub share and its backends.  How the
backend on a database works, and why it is right, is told in docs/decisions/0007.
"""
