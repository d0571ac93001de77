"""Run by alembic for every command, on the connection that :mod:`scheduler.db.migration` opened."""

from alembic import context

from scheduler.db import tables
from scheduler.db.migrations import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables.metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
