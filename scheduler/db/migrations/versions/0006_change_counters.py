"""Count what seldom happens, by triggers: a reader that finds the same numbers reads no further.

A hard-deleted row leaves no timestamp behind, and neither does a host taken out of an aggregate.
Heartbeats and reports move nothing here, so nobody waits for anybody.
"""

import sqlalchemy as sa
from alembic import op

from scheduler.db.migrations import triggers

revision = "0006"
down_revision = "0005"

counters = sa.table("change_counters", sa.column("name"), sa.column("value"))


def upgrade() -> None:
    op.create_table(
        "change_counters",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.BigInteger(), nullable=False),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
    connection = op.get_bind()
    if triggers.create_all(connection):
        op.bulk_insert(counters, [{"name": name, "value": 0} for name in triggers.COUNTERS])
