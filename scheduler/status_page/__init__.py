"""The status page: its content as JSON, and the files that show it.  It changes nothing.

``page`` has the routes and asks the right worker.  ``live`` is that worker's part: ``fleet`` counts
changes of its host table, ``recent`` the outcomes of its decisions.  ``static`` goes to browsers as
it is.  Only the daemon imports this package.
"""
