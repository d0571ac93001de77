"""What tests/unit/db/test_records.py says, on servers."""

from tests.unit.db.test_records import *  # noqa: F403
