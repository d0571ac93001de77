"""What tests/unit/claims/test_alternates.py says, on servers."""

from tests.unit.claims.test_alternates import *  # noqa: F403
