"""``evaluate``: recorded cases decided again, and compared with what was recorded."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator

from rich import progress
from rich.console import Console
from rich.table import Table

from scheduler import exit_codes
from scheduler.cli import command
from scheduler.cli.command import argument
from scheduler.evaluation.cases import ALL, OF_LABEL, STANDARD_INPUT, read_cases
from scheduler.evaluation.outcome import Evaluation, Outcome

_COLUMNS = ("cases", "agree", "listed", "differ")


class Evaluate(command.Base):
    """Decide recorded cases with the engine of the daemon.

    Writes one line of JSON for each case: its name and the hosts that pass each filter, limits,
    weights and choice.  With --check, compares with what the case expects instead.  Needs neither
    broker nor database.
    """

    needs_tables = False
    arguments = (
        argument(
            "files",
            metavar="FILE",
            nargs="*",
            default=[STANDARD_INPUT],
            help="cases as JSON lines, plain or gzip; - is standard input, the default",
        ),
        argument(
            "--check",
            action="store_true",
            help="print differences and a summary; the status is 1 if there is a difference",
        ),
        argument(
            "--semantics",
            choices=sorted(OF_LABEL),
            default=ALL,
            help="decide only the cases that this behaviour is to decide; all: every case as its "
            "label says, those labelled all under both (default)",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Decide, and write or compare; the exit status."""
        evaluation, console = Evaluation(parsed_args.semantics), Console(stderr=True)
        cases = progress.track(
            read_cases(parsed_args.files or [STANDARD_INPUT]),
            "Evaluating",
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        decided = (outcome for case in cases for outcome in evaluation.outcomes(case))
        if parsed_args.check:
            return self._check(decided)
        for outcome in decided:
            self.app.stdout.write(json.dumps(outcome.line) + "\n")
        return exit_codes.OK

    def _check(self, decided: Iterator[Outcome]) -> int:
        suites: dict[str, Counter[str]] = {}
        for outcome in decided:
            count = suites.setdefault(outcome.suite, Counter())
            verdict = self._verdict(outcome)
            count.update(("cases", verdict))
        self._summary(suites)
        has_failed = any(count["differ"] for count in suites.values())
        return exit_codes.FAILURE if has_failed else exit_codes.OK

    def _verdict(self, outcome: Outcome) -> str:
        if not outcome.differences:
            return "agree"
        reason = outcome.reason_for_difference
        note = "" if reason is None else f" (listed difference: {reason})"
        self.app.stdout.write(f"{outcome.name}{note}\n")
        for line in outcome.differences:
            self.app.stdout.write(f"    {line}\n")
        return "differ" if reason is None else "listed"

    def _summary(self, suites: dict[str, Counter[str]]) -> None:
        table = Table("suite", show_footer=len(suites) > 1)
        table.columns[0].footer = "total"
        total = sum(suites.values(), Counter())
        for name in _COLUMNS:
            table.add_column(name, str(total[name]), justify="right")
        for suite, count in suites.items():
            table.add_row(suite, *(str(count[name]) for name in _COLUMNS))
        Console(file=self.app.stdout).print(table)
