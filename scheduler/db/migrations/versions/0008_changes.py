"""Triggers that append what has changed to a table.

The counters of the revision before, and their triggers, stay for daemons of that version, which
may still run.
"""

from alembic import op

from scheduler.db import tables, triggers

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    tables.changes.create(op.get_bind())
    triggers.create(op.get_bind())
