"""Alembic's scripts: ``env.py`` runs them, ``versions`` holds one file per revision.

A new database gets its tables from :mod:`scheduler.db.migration`; revisions change older ones.
"""

#: The table with the schema's revision: Nova's own is ``alembic_version``.
VERSION_TABLE = "nova_scheduler_version"
