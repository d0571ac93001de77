"""A consumer has one claim of each request: a request has one answer."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """SQLite makes the table anew."""
    with op.batch_alter_table("claims", table_kwargs={"sqlite_autoincrement": True}) as claims:
        claims.create_unique_constraint(
            "uniq_claims0consumer_uuid0request_id", ["consumer_uuid", "request_id"]
        )
        claims.drop_constraint("uniq_claims0consumer_uuid", type_="unique")
