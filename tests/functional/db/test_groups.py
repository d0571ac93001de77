"""What tests/unit/db/test_groups.py says, on servers."""

from tests.unit.db.test_groups import *  # noqa: F403
