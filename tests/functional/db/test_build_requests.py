"""What tests/unit/db/test_build_requests.py says, on servers."""

from tests.unit.db.test_build_requests import *  # noqa: F403
