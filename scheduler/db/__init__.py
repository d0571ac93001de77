"""State in SQL: tables with Nova's names and columns, queries and migrations.

The only package with SQL in it (reference page database).  ``tables`` has every table, and
``layout`` fits statements to older ones.  ``database`` is one database with its retries,
``databases`` are the configured ones, ``cells`` reads all of a divided fleet.  ``fleet`` and its
neighbours feed the host table; most others are the queries of one table.
The engine may not import this package.
"""
