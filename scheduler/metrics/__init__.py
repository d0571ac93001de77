"""What is counted and measured, and how it is told to Prometheus.

``catalogue`` lists every metric there is.  Each worker counts in its ``tally`` and reads the rest
off what runs (``readings``) every few seconds, into a file of its own (``snapshots``); whichever
worker is asked adds the files up and renders them (``exposition``).
"""
