"""Our own tables, not Nova's: records of decisions, for longer than a worker remembers them."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, ForeignKey, Index, Integer, String, Table

from scheduler.db.tables.columns import TABLE_OPTIONS, MediumText, metadata

decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("recorded_at", DateTime, nullable=False),
    Column("daemon", String(255), nullable=False),
    Column("request_id", String(255)),
    Column("outcome", String(32), nullable=False),
    # JSON in the form of docs/explain.md.
    Column("record", MediumText, nullable=False),
    Index("decisions_request_id_idx", "request_id"),
    Index("decisions_recorded_at_idx", "recorded_at"),
    sqlite_autoincrement=True,  # ids tell which decisions are older
    **TABLE_OPTIONS,
)

decision_instances = Table(
    "decision_instances",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("decision_id", Integer, ForeignKey("decisions.id"), nullable=False),
    Column("instance_uuid", String(36), nullable=False),
    Index("decision_instances_instance_uuid_idx", "instance_uuid"),
    Index("decision_instances_decision_id_idx", "decision_id"),
    **TABLE_OPTIONS,
)
