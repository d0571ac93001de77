"""Command lines of long runs, and their results: printed, and kept for ``tests.nightly``."""

import argparse
import dataclasses
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

#: The environment variable with the path of the file that a run writes its results to, too.
FILE: Final = "NIGHTLY_RESULT"

Row = Sequence[str]
Plan = TypeVar("Plan")


def option(default: Any, text: str, choices: Sequence[str] | None = None) -> Any:
    """A field with its help, and the values that it may have."""
    return dataclasses.field(default=default, metadata={"help": text, "choices": choices})


def parse(kind: type[Plan], prog: str, about: str | None, argv: Sequence[str] | None) -> Plan:
    """A *kind*, with an option for each field, of *argv* or of this process's command line."""
    parser = argparse.ArgumentParser(
        prog=prog, description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for each in dataclasses.fields(kind):  # type: ignore[arg-type]
        parser.add_argument(
            "--" + each.name.replace("_", "-"), type=type(each.default), default=each.default,
            choices=each.metadata["choices"], help=each.metadata["help"],
        )  # fmt: skip
    return kind(**vars(parser.parse_args(argv)))


def table(head: Row, rows: Iterable[Row]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def publish(text: str) -> None:
    """Print the results of a run, and write them to :data:`FILE` if it is set."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    if path := os.environ.get(FILE):
        Path(path).write_text(text.strip() + "\n", encoding="utf-8")


def end_on_sigterm() -> None:
    """Have this process end with an exception when it is told to end: servers go with it."""
    signal.signal(signal.SIGTERM, lambda *_arguments: sys.exit(128 + signal.SIGTERM))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by a shell; units would inherit that
        signal.signal(signal.SIGINT, lambda *_arguments: None)
