"""The marker of what lives here, and the table that is printed in the end."""

import pytest

from tests.faults.faults import HEAD, Result
from tests.world import machine, results

_kept = pytest.StashKey[list[Result]]()


def pytest_configure(config):
    config.stash[_kept] = []


@pytest.fixture
def kept(pytestconfig):
    """What became of each fault, in the order of the tests."""
    return pytestconfig.stash[_kept]


def pytest_terminal_summary(config):
    rows = [each.row for each in config.stash[_kept]]
    if rows:
        results.publish(f"{machine.sentence(machine.notes())}\n\n{results.table(HEAD, rows)}")
