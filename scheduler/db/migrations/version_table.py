"""The name of the table with the schema's revision: Nova's own is ``alembic_version``."""

VERSION_TABLE = "nova_scheduler_version"
