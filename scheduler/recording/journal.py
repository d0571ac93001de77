"""The journal of a worker: all that a decision depends on, taken under the decision lock.

Encoding, compressing and writing are left to a native thread.  Nobody waits for it: when too much
waits, a decision is left out, and the next line begins anew with all hosts after a gap.
"""

import contextlib
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from oslo_log import log as logging

from scheduler import concurrency, errors
from scheduler.claims.backend import Request
from scheduler.conf import DECISION_OPTIONS
from scheduler.conf.names import DEFAULT
from scheduler.drivers.filter_scheduler import FilterScheduler, Settings
from scheduler.engine.evaluation import bounds_of
from scheduler.engine.record import DecisionRecord
from scheduler.hosts.columns import COLUMN_TYPES, POOL_PARSERS
from scheduler.hosts.host_manager import freeze_objects
from scheduler.hosts.table import HostTable, Key
from scheduler.recording.segments import Line, Writer

LOG = logging.getLogger(__name__)

WAITING: Final = 2000
SEGMENT_SECONDS: Final = 3600.0
CLOSE_SECONDS: Final = 5.0
#: Waking the thread for each line would take as long as writing it.
WRITE_SECONDS: Final = 0.1
#: Pause after lines were lost, as the next line has all hosts: 0.3 s for 10,000.
PAUSE_SECONDS: Final = 10.0
_HEARD: Final = "service_last_seen"
#: Names of the values of a row; documents are the last of them.  Others need another VERSION.
VALUES: Final = (*(each for each in COLUMN_TYPES if each != _HEARD), *POOL_PARSERS)
_PLACES: Final = {name: place for place, name in enumerate(VALUES)}
_DOCUMENTS: Final = len(VALUES) - len(POOL_PARSERS)
_ALL: Final = range(len(VALUES))
_SERVICE: Final = ("host", "disabled", "disabled_reason", "forced_down", "version", "report_count")
Asked = tuple[Request, DecisionRecord, Settings, float, np.ndarray | None, Mapping[int, int]]


class Journal:
    """Watches decisions of *driver*; *writer* writes them on a thread without locks or logging."""

    def __init__(
        self, driver: FilterScheduler, writer: Writer, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._driver = driver
        self._writer = writer
        self._clock = clock
        self._waiting = deque[Line]()
        #: Reason for which lines were lost, their number, and that of decisions missing before.
        self._failures = deque[tuple[str, int, int]]()
        self._is_full_due = True
        self._began_at = self._paused_until = float("-inf")
        self._settings: Settings | None = None
        self._bounds: Any = None
        self._seen = _Seen()
        self._is_failing = False
        #: Decisions that were left out, since the start and since the last line.
        self.left_out = self._gap = 0
        self.gaps = 0
        native = concurrency.native("threading")
        self._ending = native.Event()
        self._thread = native.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()
        driver.watch = self.decision

    @classmethod
    def from_conf(cls, conf: Any, driver: Any) -> Self | None:
        """As ``[recording]`` says, whose directory was checked; None if nothing is recorded."""
        given = conf.recording
        if not given.enabled:
            return None
        if not isinstance(driver, FilterScheduler):
            LOG.warning("%s decides in a way of its own: not recorded", type(driver).__name__)
            return None
        folder, worker = Path(given.directory), f"{conf.host}-{os.getpid()}"
        return cls(driver, Writer(folder, worker, given.keep_hours, given.max_megabytes))

    def close(self) -> None:
        self._ending.set()
        self._thread.join(CLOSE_SECONDS)
        self._note_failures()
        if self._waiting:
            LOG.warning("%d decisions were not recorded", len(self._waiting))

    @contextlib.contextmanager
    def decision(self, asked: Asked) -> Iterator[None]:
        """Record the decision that is taken in this context."""
        line = self._line(asked)
        chosen: Any = None
        try:
            yield
            chosen = [asked[1].chosen, asked[1].alternates]
        except errors.NoValidHost:
            chosen = []
            raise
        finally:
            if line is not None:
                line["answer"] = chosen
                self._bounds = _bounds(asked[2])
                self._waiting.append(line)

    def _line(self, asked: Asked) -> Line | None:
        """All that the decision depends on; None if that cannot be found out."""
        request, _record, _settings, now, _rows, _room = asked
        self._note_failures()
        if len(self._waiting) >= WAITING:
            self._pause("the disk is too slow")
        if self._clock() < self._paused_until:
            self._leave_out()
            return None
        reservations = self._driver.host_manager.reservations
        own = reservations.of(request.instance_uuids or (request.spec.instance_uuid,))
        try:
            with reservations.without(own) if own else contextlib.nullcontext():
                table = self._driver.host_manager.table
                line: Line = {"now": now, "full": self._is_full_due}
                if self._is_full_due or now - self._began_at > SEGMENT_SECONDS:
                    line |= {"full": True, "gap": self._gap}
                    self._seen, self._settings, self._bounds = _Seen(), None, None
                    table.changes = None
                    self._is_full_due, self._gap, self._began_at = False, 0, now
                line |= self._seen.changes(table)
                if line["full"]:
                    freeze_objects(table)
        except Exception as error:  # a decision is worth more than its recording
            LOG.exception("A decision could not be recorded")
            self._pause(str(error))
            self._leave_out()
            return None
        return {**line, **self._question(asked)}

    def _note_failures(self) -> None:
        while self._failures:
            why, count, before = self._failures.popleft()
            self._leave_out(count, before)
            self._pause(why)

    def _leave_out(self, count: int = 1, before: int = 0) -> None:
        self.gaps += not self._gap
        self.left_out, self._gap = self.left_out + count, self._gap + count + before

    def _pause(self, why: str) -> None:
        self._is_full_due, self._paused_until = True, self._clock() + PAUSE_SECONDS
        if not self._is_failing:
            self._is_failing = True
            LOG.warning("Decisions are not recorded: %s", why)

    def _question(self, asked: Asked) -> Line:
        request, record, settings, _now, rows, room = asked
        keys, found = self._driver.host_manager.table.keys, dict[str, Any]()
        if settings is not self._settings:
            self._settings = settings
            conf = self._driver.conf
            found["options"] = [
                (group, name, getattr(conf if group == DEFAULT else conf[group], name))
                for group, name in DECISION_OPTIONS
            ]
        if (bounds := _bounds(settings)) != self._bounds:
            found["bounds"] = bounds
        if settings.json_options.known:
            found["config_options"] = settings.json_options.known
        if rows is not None:
            found["among"] = [keys[row] for row in rows.tolist()]
            found["room"] = [(keys[row], most) for row, most in room.items()]
        return {
            **found,
            "request_id": record.request_id,
            "seed": record.seed,
            "spec": request.spec,
            "uuids": request.instance_uuids,
            "alternates": request.with_alternates,
        }

    def _run(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._ending.wait(WRITE_SECONDS)
            if lines := [self._waiting.popleft() for _each in range(len(self._waiting))]:
                self._write(lines)
        with contextlib.suppress(OSError):
            self._writer.close()

    def _write(self, lines: list[Line]) -> None:
        begin = 0
        if self._writer.file is None:  # what follows a lost line is of no use
            begin = next((n for n, line in enumerate(lines) if line["full"]), len(lines))
            self._lose("lines before them were lost", lines[:begin])
            if begin == len(lines):
                return  # nothing shows yet that the disk is well again
        try:
            if self._writer.write(lines[begin:]):
                self._is_full_due = True
            self._is_failing = False
        except Exception as error:  # noqa: BLE001 - the next line begins anew, with a gap
            with contextlib.suppress(OSError):
                self._writer.give_up()
            self._lose(str(error), lines[begin:])

    def _lose(self, why: str, lines: list[Line]) -> None:
        if lines:
            self._failures.append((why, len(lines), sum(line.get("gap", 0) for line in lines)))


def _bounds(settings: Settings) -> Any:
    """The bounds that weighers have learnt; None where they do not remember any."""
    policy = settings.policy
    return bounds_of(policy.weighers) if policy.semantics.remembers_bounds else None


class _Seen:
    """The state of the host table as the lines so far tell it."""

    def __init__(self) -> None:
        self._keys: dict[int, Key] = {}
        self._services: dict[str, Any] = {}
        self._instances: dict[str, dict[str, Any]] = {}
        #: By name and content, of a long one the digest.
        self._numbers: dict[tuple[str, Any], int] = {}
        self._cells: dict[str, bool] | None = None

    def changes(self, table: HostTable) -> Line:
        """Everything that has changed since the last call, all there is at the first one."""
        line: Line = {"gone": [], "rows": [], "contents": []}
        line |= {"services": [], "instances": [], "heard": []}
        known = table.changes
        changes = dict.fromkeys(table.keys, {_HEARD}) if known is None else known
        table.changes = defaultdict(set)
        for row, names in changes.items():
            self._row(table, row, names, line)
        if table.cells != self._cells:
            self._cells = line["cells"] = dict(table.cells)
        return line

    def _row(self, table: HostTable, row: int, names: set[str], line: Line) -> None:
        """Add to *line* what *names* says of the host of *row*, or all of another host."""
        key, before = table.keys.get(row), self._keys.pop(row, None)
        if before not in (None, key):
            line["gone"].append(before)
        if key is None:
            return
        self._keys[row] = key
        if _HEARD in names:
            line["heard"].append((key[0], table.column(_HEARD).item(row)))
            if key == before and len(names) == 1:
                return
        places: Iterable[int] = _ALL
        if key == before:
            places = sorted(_PLACES[name] for name in names if name in _PLACES)
        said = [self._value(table, row, place, line) for place in places]
        line["rows"].append((key, None if places is _ALL else places, said))
        self._service(table, key[0], line)
        self._moves(table, key[0], line)

    def _value(self, table: HostTable, row: int, place: int, line: Line) -> Any:
        """A number, or that of a document in this recording; a new one is added to *line*."""
        name = VALUES[place]
        value = table.column(name).item(row)
        if place < _DOCUMENTS:
            return value
        content = table.pools[name].key(value)
        known = self._numbers.get((name, content))
        if known is None:
            known = self._numbers[name, content] = len(self._numbers)
            line["contents"].append((known, table.content(row, name)))
        return known

    def _service(self, table: HostTable, host: str, line: Line) -> None:
        record = table.services.get(host)
        if record is not self._services.get(host):
            self._services[host] = record
            said = None if record is None else {name: record.get(name) for name in _SERVICE}
            line["services"].append((host, said))

    def _moves(self, table: HostTable, host: str, line: Line) -> None:
        """Add to *line* instances of *host* that came or changed, and uuids of those that went."""
        before, now = self._instances.get(host, {}), table.instances.get(host, {})
        new = [each for uuid, each in now.items() if before.get(uuid) is not each]
        gone = [uuid for uuid in before if uuid not in now]
        if new or gone:
            self._instances[host] = dict(now)
            line["instances"].append((host, new, gone))
