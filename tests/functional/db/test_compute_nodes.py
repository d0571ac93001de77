"""What tests/unit/db/test_compute_nodes.py says, on servers."""

from tests.unit.db.test_compute_nodes import *  # noqa: F403
