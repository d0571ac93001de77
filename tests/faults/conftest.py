"""The marker of what lives here, and the table that is printed in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.world import Account

_HERE = Path(__file__).parent
_SECONDS = 300
_HEAD = ("fault", "promise", "requests", "asked again", "refused by name", "lost", "recovery, s")


class Results:
    """Lines of the table, in the order of the tests."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, ...]] = []

    def add(self, fault: str, promise: str, account: Account) -> None:
        """Keep what one fault did."""
        refused = ", ".join(f"{count} {name}" for name, count in sorted(account.refusals.items()))
        numbers = (account.requests, account.asked_again, refused or 0, account.lost)
        recovery = f"{account.recovery_seconds:.1f}"
        self.rows.append((fault, promise, *map(str, numbers), recovery))


_results = pytest.StashKey[Results]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with an empty table."""
    config.stash[_results] = Results()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lives here, so that ``-m faults`` finds it."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.faults)
            item.add_marker(pytest.mark.timeout(_SECONDS))


@pytest.fixture
def results(pytestconfig: pytest.Config) -> Results:
    """The table."""
    return pytestconfig.stash[_results]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the table in the form of docs/reliability.md."""
    rows = config.stash[_results].rows
    if not rows:
        return
    terminalreporter.section("faults")
    for row in (_HEAD, ["---"] * len(_HEAD), *rows):
        terminalreporter.line(f"| {' | '.join(row)} |")
