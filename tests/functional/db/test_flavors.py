"""What tests/unit/db/test_flavors.py says, on servers."""

from tests.unit.db.test_flavors import *  # noqa: F403
