"""Results of long runs, as Markdown: printed, and kept for ``tests.nightly``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

#: The environment variable with the path of the file that a run writes its results to, too.
FILE: Final = "NIGHTLY_RESULT"

Row = Sequence[str]


def table(head: Row, rows: Iterable[Row]) -> str:
    """The rows below their head."""
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
