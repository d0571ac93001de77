"""The workload of a recording: requests, lifetimes of servers, hosts and what becomes of them."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scheduler import errors, objects
from scheduler.recording.checking import RecordedTable
from scheduler.recording.segments import SUFFIX, Line, Segment, names_of
from scheduler.replay.row_fleet import RowFleet
from scheduler.replay.virtual_fleet import VirtualClock, VirtualFleet
from scheduler.replay.workload import Arrival, HostEvent, Workload


def is_recording(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def files_of(paths: Iterable[Path]) -> list[Path]:
    """The *paths*, and instead of a folder with files of a recording these files."""
    return [each for path in paths for each in sorted(path.glob(f"*{SUFFIX}")) or [path]]


def read_arrivals(paths: Sequence[Path], faults: errors.Faults) -> Workload:
    """The requests of several segments by the time of their last decision.

    A server lives until some worker has it on no host any more; those that are there at the end
    stay.
    """
    asked: dict[Any, tuple[str, Line]] = {}
    workers: dict[str, _Worker] = defaultdict(_Worker)
    latest: dict[str, float] = {}
    left: dict[str, list[float]] = defaultdict(list)
    for path in paths:
        segment = Segment(path, faults)
        for place, line in segment:
            with segment.use():
                uuids, now = names_of(line), line["now"]
                here, gone = workers[line["worker"]].take(line, uuids)
                latest.update((uuid, max(now, latest.get(uuid, now))) for uuid in here)
                for uuid in gone:
                    left[uuid].append(now)
                asked[line["seed"], tuple(uuids)] = place, line
    lines = sorted(asked.values(), key=lambda each: each[1]["now"])
    since = {uuid: [at for at in times if at >= latest[uuid]] for uuid, times in left.items()}
    ended = {uuid: min(times) for uuid, times in since.items() if times}
    arrivals = [_arrival(*each, ended) for each in lines if each[1]["answer"] is not None]
    if not arrivals:
        reason = "; ".join(("it has no decisions", *faults.notes))
        raise errors.InvalidRequest(field=str(paths[0]), reason=reason)
    events = sorted(event for each in workers.values() for event in each.events)
    return Workload(f"{len(paths)} recorded files", arrivals, faults.notes, events)


class _Worker:
    """The hosts and servers as the lines of one worker show them."""

    def __init__(self) -> None:
        self.events: list[HostEvent] = []
        self._state = RecordedTable()
        self._latest = set[str]()
        self._hosts, self._gone, self._off = set[str](), set[str](), set[str]()
        self._down_seconds = math.inf

    def take(self, line: Line, uuids: list[str]) -> tuple[set[str], set[str]]:
        """Take note of *line*, which places *uuids*: the servers that came, and those that went."""
        before = self._state.table.host_of_instance if line["full"] else {}
        self._state.apply(line)
        table = self._state.table
        here = {values[0] for _host, new, _gone in line["instances"] for values in new}
        gone = {uuid for _host, _new, several in line["instances"] for uuid in several}
        gone.update(before, self._latest)  # the latest may have gone before any line had them
        self._latest = set(uuids if line["answer"] else ())
        for _group, name, value in line.get("options", ()):
            if name == "service_down_time":
                self._down_seconds = value
        if line["full"] or line["gone"] or self._gone:
            self._hosts |= table.rows_of_host.keys()
            self._gone = self._hosts - table.rows_of_host.keys()
        self._note_hosts(line["now"])
        return here | self._latest, gone - table.host_of_instance.keys() - self._latest

    def _note_hosts(self, now: float) -> None:
        table = self._state.table
        off = table.column("service_disabled") | table.column("service_forced_down")
        off |= now - table.column("service_last_seen") > self._down_seconds
        rows = table.order[off[table.order]].tolist()
        off_now = self._gone | {table.keys[row][0] for row in rows}
        changed = sorted(off_now ^ self._off)
        self.events += [HostEvent(now, host, host in off_now) for host in changed]
        self._off = off_now


def _arrival(place: str, line: Line, ended: dict[str, float]) -> Arrival:
    spec, names = objects.from_primitive(line["spec"]), names_of(line)
    lifetimes = [ended.get(uuid, math.inf) - line["now"] for uuid in names]
    return Arrival(
        line["request_id"] or ", ".join(names[:1]),
        line["now"],
        spec.flavor,
        lifetimes or (math.inf,) * spec.num_instances,
        spec=spec,
        uuids=names,
        place=place,
    )


def recorded_fleet(conf: Any, paths: Sequence[Path]) -> VirtualFleet:
    """The hosts as the earliest line of some segments has them; their servers stay."""
    faults = errors.Faults(lenient=True)
    firsts = (itertools.islice(Segment(path, faults), 1) for path in paths)
    lines = (line for _place, line in itertools.chain.from_iterable(firsts))
    line = min(lines, key=lambda each: each["now"])
    fleet = VirtualFleet(conf, RowFleet({}), VirtualClock(line["now"]))
    RecordedTable(fleet.table).apply(line)
    return fleet
