"""This project's own tables, not Nova's: claims, records of decisions, counters of changes."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, String, Table, UniqueConstraint

from scheduler.db.tables.columns import (
    OPTIONS,
    MediumText,
    columns,
    index,
    integers,
    metadata,
    own_table,
    reference,
    strings,
    uuids,
)

# Claims (docs/decisions/0007): *generation* of a host is the number of claims ever made on it,
# which a claim compares and swaps; that of a claim is the generation that it made.
claim_hosts = own_table(
    "claim_hosts",
    *strings("host", "node", required=True),
    *integers("generation", required=True),
    UniqueConstraint("host", "node", name="uniq_claim_hosts0host0node"),
)

claims = own_table(
    "claims",
    *uuids("consumer_uuid", required=True),
    *strings("host", "node", required=True),
    *integers("generation", "vcpus", "memory_mb", "disk_gb", required=True),
    *columns(MediumText, "numa_topology", "pci_requests"),
    *integers("flavor_id"),
    # Where the instance was when another host was claimed for it.
    *strings("source_host"),
    *strings("request_id", required=True),
    *columns(MediumText, "answer"),
    *columns(DateTime, "created_at", "expires_at", required=True),
    *columns(DateTime, "closed_at"),
    UniqueConstraint("consumer_uuid", name="uniq_claims0consumer_uuid"),
    index("claims", "closed_at", "id"),
    index("claims", "host", "node", "generation"),
    sqlite_autoincrement=True,  # the id of a claim is never used again
)

decisions = own_table(
    "decisions",
    *columns(DateTime, "recorded_at", required=True),
    *strings("daemon", required=True),
    *strings("request_id"),
    *columns(String(32), "outcome", required=True),
    *columns(MediumText, "record", required=True),  # JSON in the form of docs/explain.md
    index("decisions", "request_id"),
    index("decisions", "recorded_at"),
    sqlite_autoincrement=True,  # ids tell which decisions are older
)

decision_instances = own_table(
    "decision_instances",
    reference("decision_id", "decisions.id"),
    *uuids("instance_uuid", required=True),
    index("decision_instances", "instance_uuid"),
    index("decision_instances", "decision_id"),
)

# Moved by triggers (scheduler/db/baseline.py).  "aggregates": any change of an aggregate, its hosts
# or metadata; "services": a service came, went or got another name; "compute_nodes", "instances":
# living rows vanished without a trace.
change_counters = Table(
    "change_counters",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
    **OPTIONS,
)
