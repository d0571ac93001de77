"""Reading a fleet that may be divided into cells: all at once, and on without those that are away.

Each cell's database has a reader of its own (:mod:`scheduler.db.fleet`).  A cell that fails or
does not answer in time is left out; it is tried again in the background and taken up by the first
read after it answers (reference page database, section 7).
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oslo_db import exception as db_exception
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.db.cell_member import CellHealth, Member
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases
from scheduler.db.fleet import Cell, FleetChanges, FleetReader
from scheduler.db.fleet_aggregates import AggregateReader
from scheduler.db.fleet_metadata import metadata_prefix_for

LOG = logging.getLogger(__name__)

MakeReader = Callable[[Database, Cell | None], FleetReader]


class CellsReader:
    """What the host manager reads: every cell, or the one database that is not divided."""

    def __init__(
        self, databases: Databases, make_reader: MakeReader, timeout_seconds: float
    ) -> None:
        self._databases = databases
        self._make_reader = make_reader
        #: The latest configuration for which readers are to read more than the first one asked for.
        self._more: Any = None
        self._timeout_seconds = timeout_seconds
        self._members: dict[str | None, Member] = {}
        self._shown: dict[str, Cell] = {}
        self._aggregate_readers: list[AggregateReader] = []
        self._aggregates: list[Sequence[objects.Aggregate]] = []
        self._aggregates_changed = False

    @classmethod
    def from_conf(
        cls, conf: Any, databases: Databases, clock: Callable[[], float] = time.monotonic
    ) -> CellsReader:
        """A reader of *databases* with what is configured; nothing is read yet."""

        def make(database: Database, cell: Cell | None) -> FleetReader:
            together = databases.api is databases.main
            return FleetReader.from_conf(conf, database, cell, aggregates=together, clock=clock)

        return cls(databases, make, conf.scheduler.cell_timeout_seconds)

    def read_more(self, conf: Any) -> bool:
        """See the host manager's protocol; what is read already is not given up."""
        if metadata_prefix_for(conf) is not None:
            self._more = conf
        return any([member.reader.read_more(conf) for member in self._members.values()])

    def read(self, now: datetime.datetime, *, full: bool = False) -> Sequence[FleetChanges]:
        """See the host manager's protocol.  A full read looks for new and changed cells, too.

        Raises oslo.db's errors when no cell answers.
        """
        if full or not self._members:
            self._look_up()
        answers = self._ask_all(lambda member: member.read(now, full=full))
        try:
            of_all = self._read_aggregates(now, full=full)
        except FAILURES:
            for member in answers:
                member.forget()  # what was read now reaches nobody
            raise
        several = [changes for answer in answers.values() for changes in answer]
        several += self._gone(now, {each.cell.uuid for each in several if each.cell is not None})
        if of_all is None:
            return several
        if not several:
            several = [_nothing(now)]
        without = [dataclasses.replace(each, aggregates=None) for each in several[1:]]
        return [dataclasses.replace(several[0], aggregates=of_all), *without]

    def services(self, topic: str) -> Sequence[Any]:
        """The service rows of *topic* in all cells that are not disabled."""
        answers = self._ask_all(lambda member: member.reader.services(topic))
        return [
            row
            for member, found in answers.items()
            if member.cell is None or not member.cell.disabled
            for row in found
        ]

    def group_hosts(self, group: str) -> Sequence[str]:
        """The host of each living instance whose system metadata names *group*."""
        answers = self._ask_all(lambda member: member.reader.group_hosts(group))
        return [host for found in answers.values() for host in found]

    def cell_health(self) -> Sequence[CellHealth]:
        """How it is with each cell; nothing for a fleet that is not divided."""
        return [member.health for member in self._members.values() if member.cell is not None]

    # --- the cells -----------------------------------------------------------------------

    def _look_up(self) -> None:
        """Make the members what the databases say now, keeping those that did not change."""
        if not self._databases.has_cells:
            reader = self._reader(self._databases.main, None)
            self._members.setdefault(None, Member(reader, None))
            return
        found: dict[str | None, Member] = {}
        for mapping in self._databases.cells():
            member = self._member(mapping)
            if member is not None:
                found[mapping.uuid] = member
        if not found:
            LOG.warning("No cells were found")
        LOG.debug("Found %(count)i cells: %(cells)s", {"count": len(found), "cells": list(found)})
        for uuid, member in self._members.items():
            if found.get(uuid) is not member:
                member.close()
        self._members = found

    def _member(self, mapping: objects.CellMapping) -> Member | None:
        cell = Cell(mapping.uuid, mapping.id, bool(mapping.disabled))
        try:
            database = self._databases.of_cell(mapping)
        except errors.ConfigurationError as error:
            LOG.warning("Failed to get computes for cell %s: %s", mapping.uuid, error)
            return None
        known = self._members.get(mapping.uuid)
        if known is not None and known.reader.database is database:
            known.become(cell, mapping.name)
            return known
        return Member(self._reader(database, cell), cell, mapping.name)

    def _reader(self, database: Database, cell: Cell | None) -> FleetReader:
        reader = self._make_reader(database, cell)
        if self._more is not None:
            reader.read_more(self._more)
        return reader

    def _ask_all(self, question: Callable[[Member], Any]) -> dict[Member, Any]:
        """The answers of the members that give one in time; raises if there are only failures."""
        members = list(self._members.values())
        if len(members) == 1:
            return {members[0]: members[0].alone(question)}
        asked = [member for member in members if member.is_asked] or members
        attempts = {member: member.attempt(question) for member in asked}
        deadline = time.monotonic() + self._timeout_seconds
        answers: dict[Member, Any] = {}
        failure: Exception | None = None
        for member, attempt in attempts.items():
            try:
                answers[member] = attempt.result(max(0.0, deadline - time.monotonic()))
            except TimeoutError as error:
                failure = db_exception.DBConnectionError(error)
                member.leave_out(attempt, None)
            except FAILURES as error:
                failure = error
                member.leave_out(attempt, error)
            else:
                member.came_back()
        if failure is not None and not answers:
            raise failure
        return answers

    def _gone(self, now: datetime.datetime, read: set[str]) -> Iterable[FleetChanges]:
        """That nothing is left of each cell that was read before and was not now."""
        gone = [cell for uuid, cell in self._shown.items() if uuid not in read]
        self._shown = {
            uuid: member.cell
            for uuid, member in self._members.items()
            if uuid in read and uuid is not None and member.cell is not None
        }
        return [
            dataclasses.replace(_nothing(now), full=True, cell=cell, services=()) for cell in gone
        ]

    def _read_aggregates(
        self, now: datetime.datetime, *, full: bool
    ) -> Sequence[objects.Aggregate] | None:
        """Those of the API database and, before release 18, of the main one.

        None where nothing changed, and where they are read with everything else.
        """
        api, main = self._databases.api, self._databases.main
        if api is main:
            return None
        if not self._aggregate_readers:
            both = [main, api] if self._databases.aggregates_are_in_both else [api]
            self._aggregate_readers = [AggregateReader(each) for each in both]
            self._aggregates = [() for _ in both]
        for place, reader in enumerate(self._aggregate_readers):
            news = reader.read(now, full=full)
            if news is not None:
                self._aggregates[place], self._aggregates_changed = news, True
        if not self._aggregates_changed:
            return None
        self._aggregates_changed = False
        found = {each.id: each for several in self._aggregates for each in several}
        return [found[number] for number in sorted(found)]


def _nothing(now: datetime.datetime) -> FleetChanges:
    return FleetChanges(
        full=False,
        read_at=now,
        nodes=(),
        instances=(),
        services=None,
        heartbeats=(),
        flagged={},
        aggregates=None,
    )
