"""The workload of a recording: requests, lifetimes of their servers, and the hosts at its begin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scheduler import errors, objects
from scheduler.recording.faithful import RecordedTable
from scheduler.recording.segments import SUFFIX, Line, Segment
from scheduler.replay.row_fleet import RowFleet
from scheduler.replay.virtual_fleet import VirtualClock, VirtualFleet
from scheduler.replay.workload import Arrival, Faults, Workload


def is_recording(path: Path) -> bool:
    """True for a segment of a recording, by its name."""
    return path.name.endswith(SUFFIX)


def read_arrivals(paths: Sequence[Path], faults: Faults) -> Workload:
    """The requests of several segments by the time of their last decision.

    A server lives until it is on no host any more; those that are there at the end stay.
    """
    asked: dict[Any, Line] = {}
    ended: dict[str, float] = {}
    for path in paths:
        segment, state, placed = Segment(path, lenient=faults.lenient), RecordedTable(), set[str]()
        latest: list[str] = []
        for _number, line in segment:
            state.apply(line)
            homes = state.table.host_of_instance
            gone = {uuid for _host, _new, uuids in line["instances"] for uuid in uuids}
            gone.update(latest)  # they may have gone before any line had them
            for uuid in (gone & placed) - homes.keys():
                ended[uuid] = line["now"]
            latest = _names(line) if line["answer"] else []
            placed.update(latest)
            for uuid in _names(line):
                ended.pop(uuid, None)
            asked[line["seed"], tuple(_names(line))] = line
        faults.notes += segment.notes
    lines = sorted(asked.values(), key=lambda each: each["now"])
    arrivals = [_arrival(line, ended) for line in lines if line["answer"] is not None]
    if not arrivals:
        raise errors.InvalidRequest(field=str(paths[0]), reason="it has no decisions")
    return Workload(f"{len(paths)} recorded files", arrivals, faults.notes)


def _names(line: Line) -> list[str]:
    """The uuids of the servers, if the request names all of them."""
    if line["uuids"]:
        return list(line["uuids"])
    data = line["spec"]["nova_object.data"]
    own = data.get("instance_uuid")
    return [own] if own and data.get("num_instances", 1) == 1 else []


def _arrival(line: Line, ended: dict[str, float]) -> Arrival:
    spec, names = objects.from_primitive(line["spec"]), _names(line)
    lifetimes = [ended.get(uuid, math.inf) - line["now"] for uuid in names]
    return Arrival(
        line["request_id"] or ", ".join(names[:1]),
        line["now"],
        spec.flavor,
        lifetimes or (math.inf,) * spec.num_instances,
        spec=spec,
        uuids=names,
    )


def recorded_fleet(conf: Any, path: Path) -> VirtualFleet:
    """The hosts as the first line of the segment at *path* has them; their servers stay."""
    _number, line = next(_lines(path))
    fleet = VirtualFleet(conf, RowFleet({}), VirtualClock(line["now"]))
    RecordedTable(fleet.table).apply(line)
    return fleet


def _lines(path: Path) -> Iterator[tuple[int, Line]]:
    yield from Segment(path, lenient=True)
    raise errors.InvalidRequest(field=str(path), reason="it has no decisions")
