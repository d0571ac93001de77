"""Counters that triggers move, so that a reader sees in one row that nothing happened.

Our own: Nova has no such table, and its databases are read without.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, String, Table

from scheduler.db.tables.columns import TABLE_OPTIONS, metadata

change_counters = Table(
    "change_counters",
    metadata,
    # "aggregates": any change of an aggregate, its hosts or metadata; "services": a service came,
    # went or got another name; "compute_nodes", "instances": living rows vanished without a trace.
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
    **TABLE_OPTIONS,
)
