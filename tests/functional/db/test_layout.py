"""The tests of Nova's layouts once more, on servers."""

from tests.unit.db.test_layout import *  # noqa: F403
