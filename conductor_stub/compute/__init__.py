"""The compute stub: one process that is many compute hosts.

``hosts`` are all of them, made from ``profiles``; ``endpoints`` has the RPC methods of one, which
``builds`` and ``moves`` carry out.  ``host_rows`` writes, with the columns of ``node_report`` and
the cells and devices of ``layout``.  ``compute_daemon`` and the demo import this package.
"""
