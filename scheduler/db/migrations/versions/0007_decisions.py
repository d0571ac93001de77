"""Create what schedulers write about their decisions, where they are told to."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from scheduler.db.migrations.schema import MEDIUM_TEXT, columns, reference, strings, uuids

revision = "0007"
down_revision = "0006"

_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.Integer(), primary_key=True),
        *columns(sa.DateTime(), "recorded_at", required=True),
        *strings("daemon", required=True),
        *strings("request_id"),
        *columns(sa.String(32), "outcome", required=True),
        *columns(MEDIUM_TEXT, "record", required=True),
        sa.Index("decisions_request_id_idx", "request_id"),
        sa.Index("decisions_recorded_at_idx", "recorded_at"),
        sqlite_autoincrement=True,  # ids tell which decisions are older
        **_MYSQL,
    )
    op.create_table(
        "decision_instances",
        sa.Column("id", sa.Integer(), primary_key=True),
        reference("decision_id", "decisions.id"),
        *uuids("instance_uuid", required=True),
        sa.Index("decision_instances_instance_uuid_idx", "instance_uuid"),
        sa.Index("decision_instances_decision_id_idx", "decision_id"),
        **_MYSQL,
    )
