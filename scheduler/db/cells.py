"""Reads of a fleet that may be divided into cells: all at once, without those that fail.

Each cell's database has a reader of its own (:mod:`scheduler.db.fleet`).  A cell that fails or
does not answer in time is left out; it is tried again in the background and included by the
first read after it answers (reference page database, section 7).
"""

import dataclasses
import datetime
import functools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging
from oslo_utils import timeutils

from scheduler import errors, objects
from scheduler.db.aggregates import AggregateReader
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases
from scheduler.db.fleet import FleetChanges, FleetReader
from scheduler.threads import in_thread

LOG = logging.getLogger(__name__)

#: Exceptions of a cell that cannot be read: its certificates are looked at with the first read.
UNREADABLE = (errors.ConfigurationError, *FAILURES)
#: Time after a failure until a cell is tried again in the background.
RETRY_SECONDS = 2.0


@dataclass(slots=True)
class CellHealth:
    """Health of one cell, for metrics and for operators; it changes with the reads.

    *failures* counts, since the start, the reads that failed or took too long; *read_at* is when
    the hosts were last read (naive UTC), *error* why they are left out.
    """

    uuid: str
    name: str | None
    is_left_out: bool = False
    failures: int = 0
    read_at: datetime.datetime | None = None
    error: str | None = None


class Member:
    """The *reader* of a cell, or of the one database of an undivided fleet, and its health."""

    def __init__(self, reader: FleetReader) -> None:
        self.reader, cell = reader, reader.cell
        self.health = CellHealth(cell.uuid, cell.name) if cell else CellHealth("", None)
        self.must_be_full = False
        #: Done as soon as the cell, if it was left out, answers again.
        self._again: Future[None] = Future()
        self._again.set_result(None)
        #: A reader is for one thread at a time.
        self._reading = threading.Lock()
        self._closed = threading.Event()

    @property
    def is_asked(self) -> bool:
        """True unless the cell is left out and does not answer again yet."""
        return not self.health.is_left_out or self._again.done()

    def read(self, now: datetime.datetime, *, full: bool, image_properties: bool) -> FleetChanges:
        """The changes in the cell; everything, if the last read was not used."""
        with self._reading:
            full = full or self.must_be_full
            changes = self.reader.read(now, full=full, image_properties=image_properties)
            self.must_be_full, self.health.read_at = False, now
            return changes

    def answered(self) -> None:
        if self.health.is_left_out:
            LOG.info("Cell %s (%s) answers again; its hosts are back.", *self._names)
        self.health.is_left_out, self.health.error = False, None

    def failed(self, error: Exception) -> None:
        """Note *error*, a TimeoutError if there was no answer in time."""
        self.health.failures += 1
        if isinstance(error, TimeoutError):
            self.health.error = "no answer in time"
        else:
            self.health.error = str(self.reader.database.unusable(error).kwargs["reason"])

    def leave_out(self, attempt: Future[Any], error: Exception) -> None:
        """Leave the cell out after a failed or late *attempt*; after its end, try it again."""
        self.failed(error)
        health, text = self.health, "Failed to get computes for cell %s (%s): %s"
        if not health.is_left_out and isinstance(error, TimeoutError):
            LOG.warning("Timeout getting computes for cell %s (%s)", *self._names)
        elif not health.is_left_out:
            LOG.warning(text, *self._names, health.error)
        health.is_left_out = self.must_be_full = True
        if self._again.done():
            self._again = in_thread(functools.partial(self._try_again, attempt))

    def _try_again(self, attempt: Future[Any]) -> None:
        wait([attempt])
        while not self._closed.wait(RETRY_SECONDS):
            try:
                with self._reading:
                    self.reader.read(timeutils.utcnow(), full=True)
                    self.must_be_full = True  # the result of this read is not used
            except UNREADABLE as error:
                LOG.debug("Cell %s (%s) does not answer yet: %s", *self._names, error)
            except Exception:
                LOG.exception("Cell %s (%s) cannot be read", *self._names)
            else:
                return

    def close(self) -> None:
        self._closed.set()

    @property
    def _names(self) -> tuple[str, str | None]:
        return self.health.uuid, self.health.name


class CellsReader:
    """Source of the host manager: every cell, or the one database of an undivided fleet."""

    def __init__(self, conf: Any, databases: Databases) -> None:
        self._databases = databases
        self._overlap = datetime.timedelta(seconds=conf.scheduler.refresh_overlap_seconds)
        self._timeout_seconds = conf.scheduler.cell_timeout_seconds
        self._weighs_images = _weighs_images(conf)
        self._members: dict[str | None, Member] = {}
        self._shown: dict[str, objects.CellMapping] = {}
        self._aggregate_readers: list[AggregateReader] = []
        self._aggregates: list[Sequence[objects.Aggregate]] = []

    def read_more(self, conf: Any) -> None:
        """Read from now on what *conf* needs, too; what is read already is not given up."""
        self._weighs_images |= _weighs_images(conf)

    def read(self, now: datetime.datetime, *, full: bool = False) -> Sequence[FleetChanges]:
        """Per cell the changes since the last read (*now*: naive UTC), or everything.

        Raises DatabaseUnusable when no cell answers.
        """
        if full or not self._members:
            self._update_members()
        how = {"full": full, "image_properties": self._weighs_images}
        answers = self._ask_all(lambda member: member.read(now, **how))
        try:
            of_all = self._read_aggregates(full=full)
        except BaseException:
            for member in answers:
                member.must_be_full = True
            raise
        several: list[FleetChanges] = list(answers.values())
        several += self._gone(several)
        if of_all is not None:
            first = several[0] if several else FleetChanges(False)
            several[:1] = [dataclasses.replace(first, aggregates=of_all)]
        return several

    def read_beside(self, now: datetime.datetime) -> Sequence[FleetChanges]:
        """Heartbeats since the last call, read in another thread than that of the reads.

        The next read shows what does not answer, and has the aggregates that lost hosts.
        """
        found: list[FleetChanges] = []
        readers: list[FleetReader | AggregateReader] = [*self._aggregate_readers]
        readers += (each.reader for each in self._members.values() if each.is_asked)
        for reader in readers:
            try:
                found += reader.read_beside(now)
            except UNREADABLE as error:
                LOG.debug("Nothing read beside in %s: %s", reader.database.masked_url, error)
        return found

    def cell_health(self) -> Sequence[CellHealth]:
        return [each.health for each in self._members.values() if each.reader.cell]

    def _update_members(self) -> None:
        """Make the members what the databases say now, keeping those that did not change."""
        if not self._databases.has_cells:
            self._members.setdefault(None, Member(self._reader(self._databases.main, None)))
            return
        members = {each.uuid: self._member(each) for each in self._databases.cells()}
        found: dict[str | None, Member] = {uuid: each for uuid, each in members.items() if each}
        if not found:
            LOG.warning("No cells were found")
        LOG.debug("Found %(count)i cells: %(cells)s", {"count": len(found), "cells": list(found)})
        for uuid, member in self._members.items():
            if found.get(uuid) is not member:
                member.close()
        self._members = found

    def _member(self, mapping: objects.CellMapping) -> Member | None:
        try:
            database = self._databases.of_cell(mapping)
        except errors.ConfigurationError as error:
            LOG.warning("Failed to get computes for cell %s: %s", mapping.uuid, error)
            return None
        known = self._members.get(mapping.uuid)
        if known is not None and known.reader.database is database:
            known.reader.cell = mapping
            known.health.name = mapping.name
            return known
        return Member(self._reader(database, mapping))

    def _reader(self, database: Database, cell: objects.CellMapping | None) -> FleetReader:
        together = self._databases.api is self._databases.main
        return FleetReader(database, self._overlap, cell, aggregates=together)

    def _ask_all(self, question: Callable[[Member], Any]) -> dict[Member, Any]:
        """The answers of the members that give one in time; raises if there are only failures."""
        members = list(self._members.values())
        if len(members) == 1:
            return {members[0]: self._ask_only(members[0], question)}
        asked = [member for member in members if member.is_asked] or members
        attempts = {each: in_thread(functools.partial(question, each)) for each in asked}
        deadline = time.monotonic() + self._timeout_seconds
        answers: dict[Member, Any] = {}
        failure: Exception | None = None
        for member, attempt in attempts.items():
            try:
                answers[member] = attempt.result(max(0.0, deadline - time.monotonic()))
                member.answered()
            except (TimeoutError, *UNREADABLE) as error:
                failure = error
                member.leave_out(attempt, error)
        if answers or failure is None:
            return answers
        place = member.reader.database.option
        raise errors.DatabaseUnusable(option=place, reason=member.health.error)

    @staticmethod
    def _ask_only(member: Member, question: Callable[[Member], Any]) -> Any:
        """The answer of the only cell there is: it is asked again and again, never left out."""
        try:
            with member.reader.database.naming_itself():
                answer = question(member)
        except errors.ConfigurationError as error:
            member.failed(error)
            raise
        member.answered()
        return answer

    def _gone(self, several: Iterable[FleetChanges]) -> list[FleetChanges]:
        """Empty full reads for the cells that were read before and are not among *several*."""
        before = self._shown
        self._shown = {each.cell.uuid: each.cell for each in several if each.cell is not None}
        gone = before.keys() - self._shown.keys()
        return [FleetChanges(True, services=(), cell=before[uuid]) for uuid in sorted(gone)]

    def _read_aggregates(self, *, full: bool) -> Sequence[objects.Aggregate] | None:
        """The aggregates that are not read with the hosts; None where nothing changed.

        They are in the API and, before release 18, the main database.
        """
        if not self._aggregate_readers:
            self._aggregate_readers = [*map(AggregateReader, self._with_aggregates())]
        several = [reader.read(full=full) for reader in self._aggregate_readers]
        if not several or (several == self._aggregates and not full):
            return None
        self._aggregates = several
        found = {each.id: each for some in several for each in some}
        return [found[number] for number in sorted(found)]

    def _with_aggregates(self) -> list[Database]:
        """The databases whose aggregates are not read with the hosts."""
        api, main = self._databases.api, self._databases.main
        if api is not main:
            return [main, api] if self._databases.aggregates_are_in_both else [api]
        return (
            [] if all(each.reader.finds_aggregates for each in self._members.values()) else [main]
        )


def _weighs_images(conf: Any) -> bool:
    return bool(conf.filter_scheduler.image_props_weight_multiplier != 0)
