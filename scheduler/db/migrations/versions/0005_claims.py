"""Create what schedulers write about the hosts that they have promised."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from scheduler.db.migrations.schema import (
    MEDIUM_TEXT,
    columns,
    integers,
    strings,
    uuids,
)

revision = "0005"
down_revision = "0004"

_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    op.create_table(
        "claim_hosts",
        sa.Column("id", sa.Integer(), primary_key=True),
        *strings("host", "node", required=True),
        *integers("generation", required=True),
        sa.UniqueConstraint("host", "node", name="uniq_claim_hosts0host0node"),
        **_MYSQL,
    )
    op.create_table(
        "claims",
        sa.Column("id", sa.Integer(), primary_key=True),
        *uuids("consumer_uuid", required=True),
        *strings("host", "node", required=True),
        *integers("generation", "vcpus", "memory_mb", "disk_gb", required=True),
        *columns(MEDIUM_TEXT, "numa_topology", "pci_requests"),
        *integers("flavor_id"),
        *strings("source_host"),
        *strings("request_id", required=True),
        *columns(MEDIUM_TEXT, "answer"),
        *columns(sa.DateTime(), "created_at", "expires_at", required=True),
        *columns(sa.DateTime(), "closed_at"),
        sa.UniqueConstraint("consumer_uuid", name="uniq_claims0consumer_uuid"),
        sa.Index("claims_closed_at_id_idx", "closed_at", "id"),
        sa.Index("claims_host_node_generation_idx", "host", "node", "generation"),
        sqlite_autoincrement=True,  # the id of a claim is never used again
        **_MYSQL,
    )
