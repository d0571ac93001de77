"""Triggers that append what has changed to a table.

The counters of the revision before, and their triggers, stay for daemons of that version, which
may still run.
"""

from alembic import op

from scheduler.db import migration, tables

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    tables.changes.create(op.get_bind())
    migration.create_triggers(op.get_bind())
