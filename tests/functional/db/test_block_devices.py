"""What tests/unit/db/test_block_devices.py says, on servers."""

from tests.unit.db.test_block_devices import *  # noqa: F403
