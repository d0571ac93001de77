"""What tests/unit/db/test_decisions.py says, on servers."""

from tests.unit.db.test_decisions import *  # noqa: F403
