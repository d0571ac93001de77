"""Looks at what might grow: a process from inside, tables, queues, series.

``python -m tests.soak.look FOLDER SECONDS PROGRAM ARGUMENTS`` runs a program that looks at itself.
"""

import gc
import json
import os
import runpy
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import sqlalchemy as sa

from scheduler.db import tables
from scheduler.db.database import Database
from tests.servers.rabbitmq import RabbitMQ

MIB: Final = 2**20
MOST_TYPES: Final = 400
CLAIM_HOSTS: Final = tables.claim_hosts.name
#: Classes by name: not every process has loaded what they come from.
GREENLETS: Final = ("greenlet", "GreenThread")

#: Everything in one call, as each starts a virtual machine of its own.
_COUNTS: Final = """
lists:flatten(io_lib:format("~b ~b ~b ~b", [
    length(rabbit_amqqueue:list()),
    lists:sum([proplists:get_value(messages, Each)
               || Each <- rabbit_amqqueue:info_all(<<"/">>, [messages])]),
    length(rabbit_exchange:list()),
    length(rabbit_networking:connections())])).
"""

Sample = dict[str, float]


def own() -> tuple[Sample, Counter[str]]:
    """This process, and how many objects of which type there are; takes a while."""
    gc.collect()
    there = gc.get_objects()
    types = Counter(type(each).__name__ for each in there)
    objects = len(there)
    del there
    process = psutil.Process()
    return {
        "rss_mib": process.memory_info().rss / MIB,
        "fds": process.num_fds(),
        "threads": process.num_threads(),
        "python_threads": threading.active_count(),
        "greenlets": sum(types[name] for name in GREENLETS),
        "gc_objects": objects + gc.get_freeze_count(),
    }, Counter(dict(types.most_common(MOST_TYPES)))


def rows(database: Database, new_names: int = 0) -> Sample:
    """How many rows each table has; tables that are not there, or empty, are left out.

    ``claim_hosts`` has one for each name of a host there ever was: *new_names*, those of hosts that
    came since the begin, are not counted.  Nor is ``changes``, which keeps ten minutes by the
    database's own clock, whatever the time of the run.
    """
    with database.read() as connection:
        there = set(sa.inspect(connection).get_table_names())
        counts = {
            name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for name, table in tables.compute_nodes.metadata.tables.items()
            if name in there and name != tables.changes.name
        }
    if CLAIM_HOSTS in counts:
        counts[CLAIM_HOSTS] -= new_names
    return {f"rows {name}": float(count) for name, count in counts.items() if count}


def broker(server: RabbitMQ) -> Sample:
    """Queues, messages in them, exchanges and connections of the broker; takes it seconds."""
    counts = server.control("eval", _COUNTS).strip().strip('"').split()
    names = ("queues", "messages", "exchanges", "connections")
    return dict(zip(names, (float(each) for each in counts), strict=True))


class Kept:
    """Looks in a file, one per line, written and read by different processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(
        self,
        seconds: float,
        sample: Sample,
        types: Counter[str] | None = None,
        decisions: int | None = None,
    ) -> None:
        """Write one down, *seconds* after the begin, with what was done by then."""
        line = {"seconds": seconds, "decisions": decisions, "sample": sample, "types": types or {}}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                yield json.loads(line)


def grown_types(lines: Iterable[dict[str, Any]], most: int = 8) -> list[tuple[str, int]]:
    """Of which types there are more objects at the end than after the warm-up, most first."""
    counted = [each["types"] for each in lines if each["types"]]
    if len(counted) < 2:
        return []
    first, last = Counter(counted[len(counted) // 2]), Counter(counted[-1])
    last.subtract(first)
    return [(name, count) for name, count in last.most_common(most) if count > 0]


class Watch:
    """Looks at its own process from a thread, every *every_seconds*, also after a fork."""

    def __init__(self, folder: Path, every_seconds: float) -> None:
        self._folder = folder
        self._every_seconds = every_seconds
        # As they are before anything is patched: this thread is to be a real one.
        self._sleep, self._thread = time.sleep, threading.Thread

    def begin(self) -> None:
        """Begin; the file is named after the process."""
        os.register_at_fork(after_in_child=self._start)
        self._start()

    def _start(self) -> None:
        self._thread(target=self._run, name="watch", daemon=True).start()

    def _run(self) -> None:
        # Else it gets the signal, and with it the launcher's handler, which starts services anew.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        kept, began = Kept(self._folder / f"{os.getpid()}.json"), time.monotonic()
        while True:
            self._sleep(self._every_seconds)
            kept.add(time.monotonic() - began, *own())


def main() -> None:
    """Begin to look, then be the program."""
    folder, seconds, *arguments = sys.argv[1:]
    Watch(Path(folder), float(seconds)).begin()
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
