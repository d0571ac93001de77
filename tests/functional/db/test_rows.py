"""What tests/unit/db/test_rows.py says, on servers."""

from tests.unit.db.test_rows import *  # noqa: F403
