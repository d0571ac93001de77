"""Run a program with somebody inside who looks: ``python -m benchmarks.soak.inside FOLDER SECONDS
PROGRAM ARGUMENTS…``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from benchmarks.soak.look import Watch


def main() -> None:
    """Begin to look, then be the program."""
    folder, seconds, *arguments = sys.argv[1:]
    Watch(Path(folder), float(seconds)).begin()
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
