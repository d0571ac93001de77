"""The daemon's HTTP server: one address for all workers, read-only.

``server`` has the routes and accepts connections, ``workers`` lets the worker that was asked ask
the others.  Metrics, health and the status page add their routes; this package
knows none of them, and is imported by the daemon and the status page only.
"""
