"""Recorded decisions taken again on the recorded state: each must get its recorded answer."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scheduler import conf as options
from scheduler import errors, objects
from scheduler.drivers.filter_scheduler import Settings
from scheduler.drivers.loading import load_host_manager
from scheduler.drivers.selections import selections_of
from scheduler.engine.decision import decide
from scheduler.engine.evaluation import restore_bounds
from scheduler.engine.record import DecisionRecord
from scheduler.hosts.columns import POOL_PARSERS
from scheduler.hosts.instances import TrackedInstance
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable
from scheduler.recording.journal import VALUES
from scheduler.recording.segments import Line, Segment, moment


@dataclass
class Tally:
    """Decisions by how they were answered again, and the requests that were answered otherwise."""

    decisions: int = 0
    same: int = 0
    not_comparable: int = 0
    gaps: list[str] = field(default_factory=list)
    #: Decisions that were left out in the gaps.
    missing: int = 0
    different: list[str] = field(default_factory=list)


class RecordedTable:
    """A host table that is brought to the state of one line after the other."""

    def __init__(self, table: HostTable | None = None) -> None:
        """Begin with *table*, an empty one, or one of its own."""
        self.table = HostTable() if table is None else table
        self._contents: dict[int, Any] = {}

    def apply(self, line: Line) -> None:
        if line["full"]:
            self._contents = {}
            if len(self.table):
                self.table = HostTable()
        table = self.table
        self._contents.update((number, content) for number, content in line["contents"])
        for key in line["gone"]:
            table.remove((key[0], key[1]))
        self._put_rows(line)
        for host, record in line["services"]:
            table.set_service(host, record, table.last_seen.get(host, 0.0))
        for host, at in line["heard"]:
            if host in table.services:
                table.set_service(host, dict(table.services[host]), at)
        self._put_instances(line["instances"])
        if "cells" in line:
            table.cells = line["cells"]

    def _put_rows(self, line: Line) -> None:
        for (host, node), places, said in line["rows"]:
            values = {}
            names = VALUES if places is None else [VALUES[place] for place in places]
            for name, value in zip(names, said, strict=True):
                content = self._contents[value] if name in POOL_PARSERS else value
                if name == "aggregates":  # tuples, as they are keys
                    content = tuple((*each, tuple(map(tuple, pairs))) for *each, pairs in content)
                values[name] = content
            for name in ("has_service", "service_disabled", "service_forced_down"):
                values.pop(name, None)
            self.table.put((host, node), values)

    def _put_instances(self, several: Sequence[Any]) -> None:
        table = self.table
        for host, new, gone in several:
            for uuid in gone:
                if table.host_of_instance.get(uuid) == host:
                    table.drop_instance(uuid)
            for values in new:
                texts = frozenset((name, text) for name, text in values[-1])
                found = TrackedInstance(*values)._replace(image_properties=texts)
                table.put_instance(host, found.uuid, found)


class Recheck:
    """Decides the lines of segments again, with the engine as it is now."""

    def __init__(self) -> None:
        self.tally = Tally()
        #: By worker.
        self._states: dict[str, RecordedTable] = defaultdict(RecordedTable)
        self._settings: dict[str, Settings] = {}

    def play(self, segment: Segment) -> None:
        for place, line in segment:
            if gap := line.get("gap"):
                self.tally.missing += gap
                before = moment(line["now"])
                self.tally.gaps.append(f"{place}: {gap} decisions are missing before {before}")
            with segment.use():
                self._states[line["worker"]].apply(line)
                self._decide(line, place)

    def _decide(self, line: Line, place: str) -> None:
        self.tally.decisions += 1
        worker = line["worker"]
        if "options" in line or worker not in self._settings:
            self._settings[worker] = _settings(line["options"])
        settings, table = self._settings[worker], self._states[worker].table
        if "bounds" in line:
            restore_bounds(settings.policy.weighers, [(low, high) for low, high in line["bounds"]])
        if line["answer"] is None:
            self.tally.not_comparable += 1
            return
        answer = _answer(settings, table, line)
        if answer == line["answer"]:
            self.tally.same += 1
        else:
            named = line["request_id"] or ", ".join(line["uuids"])
            self.tally.different.append(
                f"{place}: {named}: {_hosts(answer)}, recorded {_hosts(line['answer'])}"
            )


def _answer(settings: Settings, table: HostTable, line: Line) -> list[Any]:
    """The hosts chosen and the alternates, as recorded; empty for a refusal."""
    spec, uuids = objects.from_primitive(line["spec"]), tuple(line["uuids"])
    spec.config_options = line.get("config_options", {})
    count = len(uuids) or spec.num_instances
    record = DecisionRecord(line["request_id"], uuids, count, line["seed"])
    rows, room = None, {}
    if "among" in line:
        rows = np.array([table.rows[host, node] for host, node in line["among"]], dtype=np.int64)
        room = {table.rows[host, node]: most for (host, node), most in line["room"]}
    reservations = Reservations(table)
    try:
        placement = decide(
            settings.policy,
            reservations,
            spec,
            uuids,
            count,
            settings.max_attempts - 1 if line["alternates"] else 0,
            now=line["now"],
            record=record,
            rows=rows,
            room=room,
        )
    except (errors.NoValidHost, errors.InvalidRequest):
        return []
    record.note_chosen(selections_of(placement, settings.zone_if_none))
    for each in reversed(placement.reservations):
        reservations.release(each)
    return [[[*pair] for pair in record.chosen], [[[*p] for p in row] for row in record.alternates]]


def _hosts(answer: Sequence[Any]) -> str:
    return ", ".join(host for host, _node in answer[0]) if answer else "refused"


def _settings(recorded: Sequence[Sequence[Any]]) -> Settings:
    conf = options.detached({(group, name): value for group, name, value in recorded})
    return Settings.from_conf(conf, load_host_manager(conf, None))
