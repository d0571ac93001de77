"""What tests/unit/claims/test_database_claims.py says, on servers."""

from tests.unit.claims.test_database_claims import *  # noqa: F403
