"""Generations of claims are random numbers of 64 bits, and name the one before."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """SQLite's integers have 64 bits by whatever type."""
    op.add_column("claims", sa.Column("previous", sa.BigInteger()))
    if op.get_context().dialect.name != "sqlite":
        for table in ("claims", "claim_hosts"):
            op.alter_column(table, "generation", type_=sa.BigInteger(), existing_nullable=False)
