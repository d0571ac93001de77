"""What tests/unit/claims/test_looks.py says, on servers."""

from tests.unit.claims.test_looks import *  # noqa: F403
