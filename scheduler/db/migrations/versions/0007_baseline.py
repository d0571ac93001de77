"""The tables of version 0.1."""

from alembic import util

revision = "0007"
down_revision = None


def upgrade() -> None:
    raise util.CommandError("new tables are created at the newest revision only")
