"""Alembic's scripts, for older databases; :mod:`scheduler.db.migration` makes new ones."""

#: The table with the schema's revision: Nova's own is ``alembic_version``.
VERSION_TABLE = "nova_scheduler_version"
