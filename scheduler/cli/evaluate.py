"""``evaluate``: recorded cases decided again, and compared with what was recorded."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import ClassVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from scheduler import exit_codes
from scheduler.cli import command
from scheduler.evaluation import behaviour
from scheduler.evaluation.cases import STANDARD_INPUT, CaseSource
from scheduler.evaluation.outcome import Evaluation, Outcome

#: Work shorter than this needs no progress bar.
PATIENCE_SECONDS = 1.0

_COLUMNS = ("cases", "agree", "listed", "differ")


class Evaluate(command.Base):
    """Decide recorded cases with the engine of the daemon.

    Writes one line of JSON for each case: its name and the hosts that pass each filter, limits,
    weights and choice.  With --check, compares with what the case expects instead.  Needs neither
    broker nor database.
    """

    needs_tables: ClassVar[bool] = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The files, and what to do with them."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "files",
            metavar="FILE",
            nargs="*",
            default=[STANDARD_INPUT],
            help="cases as JSON lines, plain or gzip; - is standard input, the default",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="print differences and a summary; the status is 1 if there is a difference",
        )
        parser.add_argument(
            "--semantics",
            choices=sorted(behaviour.OF_LABEL),
            default=behaviour.ALL,
            help="decide only the cases that this behaviour is to decide; all: every case as its "
            "label says, those labelled all under both (default)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Decide, and write or compare; the exit status."""
        source = CaseSource(parsed_args.files or [STANDARD_INPUT])
        decided = _decided(source, parsed_args.semantics)
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


def _decided(source: CaseSource, wanted: str) -> Iterator[Outcome]:
    evaluation = Evaluation(wanted)
    with _progress(source) as show:
        for item in source:
            yield from evaluation.outcomes(item)
            show()


@contextlib.contextmanager
def _progress(source: CaseSource) -> Iterator[Callable[[], None]]:
    """A bar on standard error once this has taken a while; call what it yields after each case."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("Evaluating", total=source.total_bytes)
    is_seen = bar.console.is_terminal
    patient_until = time.monotonic() + PATIENCE_SECONDS

    def show() -> None:
        if is_seen and not bar.live.is_started and time.monotonic() > patient_until:
            bar.start()
        bar.update(task, completed=source.bytes_read)

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()
