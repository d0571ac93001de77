"""What tests/unit/db/test_instances.py says, on servers."""

from tests.unit.db.test_instances import *  # noqa: F403
