"""Mutation testing: ``python -m tests.mutation [ROOM | MODULE ...]``, or ``make mutants``."""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from rich.table import Table

from tests.mutation import results, rooms


def main(arguments: list[str]) -> int:
    """Try the mutants, print the table, keep the results and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", help="rooms, or paths of modules; default: all rooms")
    parser.add_argument(
        "--page", action="store_true", help="only write docs/mutation.md from what is kept"
    )
    parser.add_argument(
        "--again", action="store_true", help="of modules that stay the same try only survivors"
    )
    options = parser.parse_args(arguments)
    if not options.page:
        # Only here: those who write the page need no mutmut.
        from tests.mutation import running  # noqa: PLC0415

        try:
            picked = rooms.chosen(options.names, running.ROOT)
        except ValueError as error:
            parser.error(str(error))
        for room, modules in picked:
            _try(running, room, modules, again=options.again)
    results.write_page()
    return 0


def _try(running, room, modules, *, again) -> None:
    begun = time.monotonic()
    outcomes = running.run(room, modules, results.load() if again else {})
    kept = {name: each for name, each in results.load().items() if name not in outcomes}
    results.save({**kept, **outcomes})
    table = Table(title=f"{room.name}, {time.monotonic() - begun:.0f} s")
    table.add_column("module")
    for heading in results.HEADINGS:
        table.add_column(heading, justify="right")
    for name, each in outcomes.items():
        table.add_row(name, *results.row(each))
    table.add_section()
    table.add_row(room.name, *results.row(results.total(outcomes.values(), room.name)))
    Console(width=110).print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
