"""What tests/unit/db/test_services.py says, on servers."""

from tests.unit.db.test_services import *  # noqa: F403
