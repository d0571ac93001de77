"""What tests/unit/db/test_aggregates.py says, on servers."""

from tests.unit.db.test_aggregates import *  # noqa: F403
