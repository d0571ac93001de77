"""The compute stub: one process that is many compute hosts.

``hosts`` are all of them, made from ``profiles``; ``endpoints`` has the RPC methods of one, which
``host`` carries out.  ``host_rows`` writes, with the columns and places of ``node_report``.
``compute_daemon`` and the demo import this package.
"""
