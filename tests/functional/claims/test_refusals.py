"""What tests/unit/claims/test_refusals.py says, on servers."""

from tests.unit.claims.test_refusals import *  # noqa: F403
