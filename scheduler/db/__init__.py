"""State in SQL: tables with Nova's names and columns, queries and migrations.

The only package with SQL in it.  Reference page: database.
"""
