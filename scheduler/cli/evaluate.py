"""``evaluate``: recorded cases decided again, and compared with what was recorded."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from scheduler import exit_codes
from scheduler.cli import command
from scheduler.cli.command import argument
from scheduler.conf import mistakes
from scheduler.evaluation.cases import STANDARD_INPUT, read_cases
from scheduler.evaluation.outcome import Outcome, outcome_of
from scheduler.explain.rendering import Paper

_COLUMNS = ("cases", "agree", "listed", "differ")


class Evaluate(command.Text):
    """Decide recorded cases with the engine of the daemon.

    Writes one line of JSON for each case: its name and the hosts that pass each filter, limits,
    weights and choice.  With --check, compares with what the case expects instead.  Needs neither
    broker nor database.
    """

    arguments = (
        argument(
            "files",
            metavar="FILE",
            nargs="*",
            default=[STANDARD_INPUT],
            help="cases as JSON lines, *.gz compressed; - is standard input, the default",
        ),
        argument(
            "--check",
            action="store_true",
            help="print differences and a summary; the status is 1 if there is a difference",
        ),
    )

    def act(self, parsed_args: argparse.Namespace) -> Any:
        cases = read_cases(parsed_args.files or [STANDARD_INPUT])
        decided = map(outcome_of, command.tracked(cases, "Evaluating"))
        return self._compared(decided) if parsed_args.check else self._lines(decided)

    def show(self, found: Any) -> None:
        """One line of JSON for each case, or the differences and a summary."""
        if not isinstance(found, dict):
            for line in found:
                self.app.stdout.write(json.dumps(line) + "\n")
            return
        for each in found["differences"]:
            reason = each["listed"]
            note = "" if reason is None else f" (listed difference: {reason})"
            lines = "".join(f"    {line}\n" for line in each["lines"])
            self.app.stdout.write(f"{each['name']}{note}\n{lines}")
        self._summary(found["suites"])

    def _lines(self, decided: Iterator[Outcome]) -> Iterator[Mapping[str, Any]]:
        """Yield the record of each case; one that cannot be decided is named, and fails."""
        for outcome in decided:
            if outcome.failure is not None:
                self.tell(f"error: {outcome.name}: {mistakes.plain(outcome.failure)}")
                self.status = exit_codes.FAILURE
            yield outcome.line

    def _compared(self, decided: Iterator[Outcome]) -> dict[str, Any]:
        suites: dict[str, Counter[str]] = {}
        differences = []
        for outcome in decided:
            verdict, reason = "agree", outcome.reason_for_difference
            if outcome.differences:
                verdict = "differ" if reason is None else "listed"
                lines = {"listed": reason, "lines": outcome.differences}
                differences.append({"name": outcome.name, **lines})
            suites.setdefault(outcome.suite, Counter()).update(("cases", verdict))
        if any(count["differ"] for count in suites.values()):
            self.status = exit_codes.FAILURE
        return {"suites": suites, "differences": differences}

    def _summary(self, suites: Mapping[str, Counter[str]]) -> None:
        table = Table("suite", show_footer=len(suites) > 1)
        table.columns[0].footer = "total"
        total = sum(suites.values(), Counter())
        for name in _COLUMNS:
            table.add_column(name, str(total[name]), justify="right")
        for suite, count in suites.items():
            table.add_row(suite, *(str(count[name]) for name in _COLUMNS))
        Paper(file=self.app.stdout).print(table)
