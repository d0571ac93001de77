"""Counts and measurements of the workers, for Prometheus.

``catalogue`` lists every metric.  Each worker counts (``counters``) and reads the rest off what
runs (``readings``), into a file of its own; whichever worker is asked adds them up (``samples``).
Only the daemon imports this package.
"""
