"""The marker of what lives here, and the table that is printed in the end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import machine
from tests.faults import table
from tests.faults.faults import FAULTS
from tests.faults.table import Result
from tests.reliability_page import PAGE

_HERE = Path(__file__).parent
_SECONDS = 300


class Results:
    """What became of each fault, in the order of the tests."""

    def __init__(self) -> None:
        self.kept: list[Result] = []
        self._notes: dict[str, Any] = {}
        self._began = 0.0

    def begin(self) -> None:
        """Note when and where, before the first fault."""
        if not self._notes:
            self._notes, self._began = machine.notes(), time.monotonic()

    def add(self, result: Result) -> None:
        """Keep what one fault did."""
        self.kept.append(result)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return [each.fault for each in self.kept] == [each.name for each in FAULTS]

    @property
    def sentence(self) -> str:
        """On what, when, and for how long."""
        minutes = (time.monotonic() - self._began) / 60
        return f"{machine.sentence(self._notes)} The run took {minutes:.0f} minutes."


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
    results = pytestconfig.stash[_results]
    results.begin()
    return results


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that does not agree with the one before has failed."""
    rows = [each.row for each in session.config.stash[_results].kept]
    if not rows:
        return
    before = table.recorded(PAGE.read_text(encoding="utf-8"))
    if table.differences(rows, before) and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the table, compare it with the one in docs/reliability.md, and write it there."""
    results = config.stash[_results]
    rows = [each.row for each in results.kept]
    if not rows:
        return
    terminalreporter.section("faults")
    for line in table.render(rows).splitlines():
        terminalreporter.line(line)
    page = PAGE.read_text(encoding="utf-8")
    for line in table.differences(rows, table.recorded(page)) or ["Agrees with the run before."]:
        terminalreporter.line(line)
    if results.is_whole:
        PAGE.write_text(table.written(page, results.sentence, rows), encoding="utf-8")
        terminalreporter.line(f"Written to {PAGE.name}; digest {table.digest(rows)}.")
    else:
        terminalreporter.line("Not every fault was tried: docs/reliability.md stays as it is.")
