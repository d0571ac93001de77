"""What tests/unit/db/test_mappings.py says, on servers."""

from tests.unit.db.test_mappings import *  # noqa: F403
