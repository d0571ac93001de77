"""What tests/unit/claims/test_protocol.py says, on servers."""

from tests.unit.claims.test_protocol import *  # noqa: F403
