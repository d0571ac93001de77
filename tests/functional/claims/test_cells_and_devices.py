"""What tests/unit/claims/test_cells_and_devices.py says, on servers."""

from tests.unit.claims.test_cells_and_devices import *  # noqa: F403
