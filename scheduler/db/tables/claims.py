"""Our own tables, not Nova's: what schedulers have promised (docs/decisions/0007)."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Index, Integer, String, Table, UniqueConstraint

from scheduler.db.tables.columns import TABLE_OPTIONS, MediumText, metadata

claim_hosts = Table(
    "claim_hosts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("host", String(255), nullable=False),
    Column("node", String(255), nullable=False),
    # How many claims were ever made on the host: what a claim compares and swaps.
    Column("generation", Integer, nullable=False),
    UniqueConstraint("host", "node", name="uniq_claim_hosts0host0node"),
    **TABLE_OPTIONS,
)

claims = Table(
    "claims",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("consumer_uuid", String(36), nullable=False),
    Column("host", String(255), nullable=False),
    Column("node", String(255), nullable=False),
    # The host's generation that this claim made.
    Column("generation", Integer, nullable=False),
    Column("vcpus", Integer, nullable=False),
    Column("memory_mb", Integer, nullable=False),
    Column("disk_gb", Integer, nullable=False),
    Column("numa_topology", MediumText),
    Column("pci_requests", MediumText),
    Column("flavor_id", Integer),
    # Where the instance was when it was promised to another host.
    Column("source_host", String(255)),
    Column("request_id", String(255), nullable=False),
    Column("answer", MediumText),
    Column("created_at", DateTime, nullable=False),
    Column("expires_at", DateTime, nullable=False),
    Column("closed_at", DateTime),
    UniqueConstraint("consumer_uuid", name="uniq_claims0consumer_uuid"),
    Index("claims_closed_at_id_idx", "closed_at", "id"),
    Index("claims_host_node_generation_idx", "host", "node", "generation"),
    sqlite_autoincrement=True,  # the id of a claim is never used again
    **TABLE_OPTIONS,
)
