"""The records of a worker's decisions, and errors as callers get them.

Records are opened, finished, kept within bytes and passed to listeners.  Errors are of classes of
Nova's, with the id of a fault or counts of hosts.
"""

import contextlib
import random
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from keystoneauth1.exceptions import ClientException
from oslo_log import log as logging
from oslo_utils import uuidutils

from scheduler import errors
from scheduler.engine.evaluation import log_counts
from scheduler.engine.record import DecisionRecord

LOG = logging.getLogger(__name__)

DEFAULT_MEMORY_BYTES: Final = 32 * 1024 * 1024
_SEED_BITS: Final = 64
#: The log line names so many instances and hosts.
_NAMES_SHOWN: Final = 20
#: Of the request id of a request that was refused.
_ID_CHARACTERS: Final = 255
#: A record without what its size depends on, its request included.
_BASE_BYTES: Final = 12_000
#: A host or an instance, by name.
_NAME_BYTES: Final = 150
#: The counts of a filter, or an extra spec.
_COUNTS_BYTES: Final = 300
#: A reason with the closest host and its value, or a weigher's numbers for the best sixteen.
_NUMBERS_BYTES: Final = 700

Listener = Callable[[DecisionRecord], None]
"""Called with each finished record, on the thread that answers: must be quick."""


class Memory:
    """The latest records, oldest first; the oldest make room when *limit_bytes* are exceeded.

    One half of the bytes is for records, the other for their verdicts on every host, which go
    first.  May be read by any thread.  With a limit of 0 nothing is kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        #: The number of the latest record; 0 before the first.
        self.last_sequence = 0
        self._kept: deque[tuple[DecisionRecord, int]] = deque()
        self._record_bytes = 0
        self._detailed: deque[DecisionRecord] = deque()
        self._detail_bytes = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return self._record_bytes + self._detail_bytes

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, position: int) -> DecisionRecord:
        """Takes no lock: reports are made wherever a signal finds the process."""
        return self._kept[position][0]

    def __iter__(self) -> Iterator[DecisionRecord]:
        with self._lock:
            kept = list(self._kept)
        return iter([record for record, _nbytes in kept])

    def since(self, sequence: int) -> list[DecisionRecord]:
        return [record for record in self if record.sequence > sequence]

    def get(self, sequence: int) -> DecisionRecord | None:
        return next((record for record in self if record.sequence == sequence), None)

    def find(self, name: str) -> list[DecisionRecord]:
        """Those of a request id or of an instance's uuid, the newest first."""
        return [r for r in self if name == r.request_id or name in r.instance_uuids][::-1]

    def append(self, record: DecisionRecord) -> None:
        nbytes = size_of(record)
        with self._lock:
            self.last_sequence += 1
            record.sequence = self.last_sequence
            self._kept.append((record, nbytes))
            self._record_bytes += nbytes
            if record.verdicts is not None:
                self._detailed.append(record)
                self._detail_bytes += record.verdicts.nbytes
            while self._detailed and self._detail_bytes > self.limit_bytes // 2:
                self._drop_verdicts()
            while self._kept and self._record_bytes > (self.limit_bytes + 1) // 2:
                oldest, its_bytes = self._kept.popleft()
                self._record_bytes -= its_bytes
                if oldest.verdicts is not None:
                    self._drop_verdicts()

    def _drop_verdicts(self) -> None:
        """Those of the oldest record that has any."""
        record = self._detailed.popleft()
        if record.verdicts is not None:
            self._detail_bytes -= record.verdicts.nbytes
            record.verdicts = None


def size_of(record: DecisionRecord) -> int:
    """About how many bytes *record* takes without verdicts; rather too many than too few."""
    names = len(record.instance_uuids) + len(record.chosen) + sum(map(len, record.alternates))
    counts, numbers = len(record.filters), 0
    if record.top is not None:
        names, numbers = names + len(record.top.pairs), len(record.top.parts)
    if record.refusal is not None:
        numbers += len(record.refusal.findings)
    spec = record.request
    group, flavor = getattr(spec, "instance_group", None), getattr(spec, "flavor", None)
    for part, name in ((group, "members"), (group, "hosts"), (spec, "ignore_hosts")):
        names += len(getattr(part, name, None) or ())
    counts += len(getattr(flavor, "extra_specs", None) or ())
    several = _NAME_BYTES * names + _COUNTS_BYTES * counts + _NUMBERS_BYTES * numbers
    return _BASE_BYTES + sys.getsizeof(record.failure) + several


class Recorder:
    """Opens a record when a decision begins, and keeps it when the decision is over.

    ``records`` are the latest that fit into *memory_bytes*; ``listeners`` are called once with
    every finished record.  Threads do not see each other's open records.
    """

    def __init__(self, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.records = Memory(memory_bytes)
        self.listeners: list[Listener] = []
        self._open = threading.local()

    @contextlib.contextmanager
    def decision(
        self, driver: str, context: Any, spec: Any, uuids: Sequence[str] | None
    ) -> Iterator[DecisionRecord]:
        """A context in which the record of one decision of *driver* is open.

        Where the caller has opened one already, it is that one, and stays open.
        """
        opened: DecisionRecord | None = getattr(self._open, "record", None)
        if opened is not None:
            yield opened
            return
        began, named = time.perf_counter(), tuple(uuids or ())
        own = getattr(spec, "instance_uuid", None)
        record = self._open.record = DecisionRecord(
            request_id=getattr(context, "request_id", None),
            instance_uuids=named or ((own,) if own else ()),
            num_instances=len(named) or getattr(spec, "num_instances", 0),
            seed=random.getrandbits(_SEED_BITS),  # each worker is seeded when it is forked
            driver=driver,
            request=spec,
            wants_detail=self.records.limit_bytes > 0,
        )
        try:
            yield record
        except Exception as error:
            _note_failure(record, error)
            raise
        finally:
            self._open.record = None
            record.elapsed_ms = (time.perf_counter() - began) * 1000
            self._finish(record)

    def refused(self, context: Any, error: Exception) -> None:
        """Keep a record of a request that no driver got to see because of *error*."""
        named = getattr(context, "request_id", None)  # it may be what is wrong
        request_id = None if named is None else str(errors.quoted(named))[:_ID_CHARACTERS]
        record = DecisionRecord(request_id, (), 0, 0)
        _note_failure(record, error)
        self._finish(record)

    def _finish(self, record: DecisionRecord) -> None:
        self.records.append(record)
        later = record.refusal if record.refusal and record.refusal.filters else None
        counts, index = (later.filters, later.index) if later else (record.filters, 0)
        log_counts(counts, "".join(record.instance_uuids[index : index + 1]))
        LOG.info("%s", decision_line(record))
        for listener in self.listeners:
            try:
                listener(record)
            except Exception:
                LOG.exception("A decision could not be recorded")


def _note_failure(record: DecisionRecord, error: Exception) -> None:
    record.outcome = errors.code_of(error)
    record.failure = error_text(error)
    record.chosen, record.alternates = [], []
    if record.outcome == errors.INTERNAL_FAULT:
        record.fault_id = uuidutils.generate_uuid()


def error_text(error: Exception) -> str:
    """The error's text, with what is behind it where it says nothing itself."""
    if not isinstance(error, errors.NovaException):
        return f"{type(error).__name__}: {error}"
    return f"{error}{error.__cause__}" if error.kwargs.get("reason") == "" else str(error)


def decision_line(record: DecisionRecord) -> str:
    """The one line on a decision, for the log and for reports."""
    fault = f" (fault {record.fault_id})" if record.fault_id else ""
    if record.failure:
        outcome = f"failed: {record.failure} [{record.outcome}]{fault}"
    else:
        times = Counter([host for host, _node in record.chosen])
        hosts = [host if n == 1 else f"{host} (x{n})" for host, n in times.items()]
        outcome = f"selected {_shortened(hosts)}"
    return (
        f"Placement of {record.num_instances} instance(s) {_shortened(record.instance_uuids)}: "
        f"{outcome} ({_asked_for(record.request)}{record.hosts_considered} hosts considered, "
        f"{record.hosts_left} passed the filters, {record.elapsed_ms:.1f} ms)"
    )


def _asked_for(request: Any) -> str:
    """Flavor and zone of the *request*; empty where it was refused before it was read."""
    if request is None:
        return ""
    flavor = getattr(getattr(request, "flavor", None), "name", None) or "unnamed"
    zone = getattr(request, "availability_zone", None)
    where = "any zone" if zone is None else f"zone {_quoted(zone)}"
    return f"flavor {_quoted(flavor)}, {where}, "


def _quoted(text: str) -> str:
    """See ``errors.quoted``: almost every name is short and printable as it is."""
    is_plain = len(text) <= errors.MOST_QUOTED and text.isprintable()
    return text if is_plain else str(errors.quoted(text))


def _shortened(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_NAMES_SHOWN])
    more = len(words) - _NAMES_SHOWN
    return f"[{shown}, and {more} more]" if more > 0 else f"[{shown}]"


def for_caller(error: Exception, record: DecisionRecord, *, exposes: bool) -> Exception:
    """The error for the caller: a fault by its id, with *exposes* NoValidHost with counts."""
    if record.fault_id is not None:
        return identified(error, record.request_id, "select_destinations", record.fault_id)
    if exposes and isinstance(error, errors.NoValidHost):
        return _with_counts(error, record)
    return error


def identified(
    error: Exception, request_id: str | None, method: str, fault_id: str | None = None
) -> Exception:
    """Log an internal fault with its traceback and an id; return an error that names the id.

    Errors of keystoneauth stay what they are: Nova lets them through.
    """
    fault_id = fault_id or uuidutils.generate_uuid()
    LOG.error(
        "Internal fault %s in %s, request %s: %s",
        *(fault_id, method, request_id, error),
        exc_info=(type(error), error, error.__traceback__),
    )
    what = type(error).__name__
    if isinstance(error, errors.ExtensionFailed):  # whose own words are for operators only
        cause = error.__cause__
        what = "{name} failed{place}".format_map(error.kwargs)
        what += "" if cause is None else f": {type(cause).__name__}"
    elif isinstance(error, errors.NovaException | ClientException):
        if isinstance(error, errors.NovaException):
            error.kwargs["fault_id"] = fault_id
        return error
    text = f"Internal fault {fault_id} ({what}); the scheduler's log has more"
    fault = errors.NovaException(text, fault_id=fault_id)
    fault.__cause__ = error
    return fault


def _with_counts(error: errors.NoValidHost, record: DecisionRecord) -> errors.NoValidHost:
    parts = [f"{cause} {count}" for cause, count in record.never_evaluated.items()]
    for count in record.filters:
        if count.removed:
            reasons = ", ".join(f"{code} {number}" for code, number in count.removed.items())
            parts.append(f"{count.name} {count.start - count.end} ({reasons})")
    if not parts:
        return error
    counts = f"Removed of {record.fleet} hosts: {'; '.join(parts)}."
    reason = f"{error.kwargs.get('reason') or ''} {counts}".strip()
    given = {**error.kwargs, "reason": reason, "error_code": errors.code_of(error)}
    longer = type(error)(f"{error.format_message().rstrip()} {counts}", **given)
    longer.__cause__ = error
    return longer
