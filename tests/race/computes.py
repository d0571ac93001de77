"""The compute hosts, and what conductors do for them: builds, failures, deletions, reports.

Plain SQL, in the order of Nova's compute service: the server is on the host, the host reports it,
the build is done; the server is deleted, the host reports that.  A host has the last word.
"""

import queue
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from benchmarks import configuration
from conductor_stub.alternates import AlternateClaims
from scheduler import objects
from scheduler.db.database import Database
from scheduler.rpc.context import RequestContext
from tests.race import callers, journal
from tests.race.callers import AnsweredHosts, Request
from tests.race.plan import Plan

STEP_SECONDS: Final = 0.05
_NOW: Final = "updated_at = UTC_TIMESTAMP()"
_ARRIVE: Final = (
    "UPDATE instances SET host = %s, node = %s, vm_state = 'building', task_state = NULL, "
    f"{_NOW} WHERE uuid = %s"
)
_ACTIVE: Final = f"UPDATE instances SET vm_state = 'active', {_NOW} WHERE uuid = %s"
_ERROR: Final = (
    f"UPDATE instances SET vm_state = 'error', task_state = NULL, {_NOW} WHERE uuid = %s"
)
_DELETE: Final = f"UPDATE instances SET vm_state = 'deleted', deleted = id, {_NOW} WHERE uuid = %s"
_REPORT: Final = (
    "UPDATE compute_nodes SET memory_mb_used = %s, free_ram_mb = memory_mb - %s, running_vms = %s, "
    f"{_NOW} WHERE host = %s"
)
#: A new server, known to the database before anybody asks for hosts for it: uuid and memory.
NEW: Final = (
    "INSERT INTO instances (uuid, memory_mb, vm_state, task_state, deleted, created_at) "
    "VALUES (%s, %s, 'building', 'scheduling', 0, UTC_TIMESTAMP())"
)


class Computes:
    """Builds what was answered, in a thread of its own; ``again`` holds servers to ask for anew."""

    def __init__(self, plan: Plan, database_url: str, answered: AnsweredHosts) -> None:
        self._plan = plan
        self._answered = answered
        self._rng = random.Random(plan.seed + 1)
        self._connection = journal.connect(database_url, autocommit=False)
        self._database = Database(database_url)
        conf = configuration.in_process({})
        self._claims = AlternateClaims(conf, self._database)
        self._orders: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._used_mb: Counter[str] = Counter()
        self._running: dict[str, tuple[str, int]] = {}
        self.again: deque[tuple[str, int]] = deque()
        self._is_stepping = False
        self.counts: Counter[str] = Counter()
        #: When, at the latest, a server's memory was free for others to see.
        self.freed_at: dict[str, float] = {}
        self.most_mb = 0
        self._error: BaseException | None = None
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, name="computes", daemon=True)
        self._thread.start()

    # --- orders --------------------------------------------------------------------------

    def take(self, request: Request) -> None:
        """What becomes of the servers of a request that has ended."""
        self._orders.put(("ended", request))

    def delete(self, count: int) -> None:
        """Delete so many running servers, or all there are."""
        self._orders.put(("delete", count))

    @property
    def is_busy(self) -> bool:
        """True while orders are open, or servers are to be asked for anew; asked in that order."""
        return not self._orders.empty() or self._is_stepping or bool(self.again)

    @property
    def used_mb(self) -> int:
        return sum(self._used_mb.values())

    def finish(self) -> None:
        """Carry out all orders, then stop; raises what went wrong in the thread."""
        self._stops.set()
        self._thread.join()
        self._connection.close()
        self._database.dispose()
        self.check()

    def check(self) -> None:
        """Raise what went wrong in the thread."""
        if self._error is not None:
            raise RuntimeError("the compute hosts have failed") from self._error

    # --- the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not (self._stops.is_set() and self._orders.empty()):
                began = time.monotonic()
                self._is_stepping = True
                self._step()
                self._is_stepping = False
                # Claims that are to be lost show nowhere else until they are written again.
                seconds = max(STEP_SECONDS, 8 * self._plan.break_seconds)
                self._stops.wait(max(0.0, seconds - (time.monotonic() - began)))
        except BaseException as error:  # noqa: BLE001 - told by check
            self._error = error

    def _step(self) -> None:
        ended: list[Request] = []
        deletions = 0
        while not self._orders.empty():
            kind, order = self._orders.get()
            if kind == "ended":
                ended.append(order)
            else:
                deletions += order
        failed = [uuid for each in ended if each.answer is None for uuid in each.uuids]
        arriving: list[tuple[str, str, int]] = []
        for request in ended:
            failed += self._sort(request, arriving)
        self._fail(failed)
        self._build(arriving)
        self._remove(deletions)

    def _sort(self, request: Request, arriving: list[tuple[str, str, int]]) -> list[str]:
        """Decide what becomes of each server with an answer; returns those that fail."""
        failed = []
        for uuid, row in zip(
            request.uuids, request.answer or (), strict=request.answer is not None
        ):
            selections = [objects.from_primitive(each) for each in row]
            host = self._built_on(uuid, request.memory_mb, selections)
            if host:
                arriving.append((uuid, host, request.memory_mb))
            elif host is None:
                failed.append(uuid)
        return failed

    def _built_on(self, uuid: str, memory_mb: int, selections: Sequence[Any]) -> str | None:
        """The host that takes the server; None if none does, empty if it is asked for again."""
        self.counts["builds"] += 1
        fails = self._rng.random() < self._plan.fail_rate
        for number, selection in enumerate(selections):
            host = str(selection.service_host)
            if number and not self._may_go(uuid, memory_mb, selection):
                continue
            if fails:
                fails = False
                self.counts["builds that failed"] += 1
                self._answered.release(uuid)
                what = self._rng.choice(("alternate", "again", "error"))
                if what == "again":
                    self.again.append((uuid, memory_mb))
                    return ""
                if what == "error":
                    return None
            elif self._used_mb[host] + memory_mb > self._plan.host_mb:
                self.counts["rescheduled"] += 1
                self._answered.release(uuid)
            else:
                self._used_mb[host] += memory_mb
                self._running[uuid] = host, memory_mb
                return host
        return None

    def _may_go(self, uuid: str, memory_mb: int, selection: Any) -> bool:
        """Claim an alternate, as conductors do; without claims the host will say."""
        if self._plan.claims == "database":
            context = RequestContext(request_id=f"req-{uuid}", overwrite=False)
            spec = callers.a_spec(memory_mb, 1, uuid)
            if not self._claims.claim(context, spec, uuid, selection):
                return False
        self.counts["alternates taken"] += 1
        self._answered.promise(uuid, str(selection.service_host), memory_mb)
        return True

    def _fail(self, uuids: Sequence[str]) -> None:
        for uuid in uuids:
            self._answered.release(uuid)
        self._write(_ERROR, [(uuid,) for uuid in uuids])
        self.freed_at.update(dict.fromkeys(uuids, time.time()))

    def _build(self, arriving: Sequence[tuple[str, str, int]]) -> None:
        self._write(_ARRIVE, [(host, host, uuid) for uuid, host, _mb in arriving])
        self._report({host for _uuid, host, _mb in arriving})
        self._write(_ACTIVE, [(uuid,) for uuid, _host, _mb in arriving])
        self.most_mb = max(self.most_mb, self.used_mb)

    def _remove(self, count: int) -> None:
        uuids = self._rng.sample(sorted(self._running), min(count, len(self._running)))
        for uuid in uuids:
            self._answered.release(uuid)
        self._write(_DELETE, [(uuid,) for uuid in uuids])
        hosts = set()
        for uuid in uuids:
            host, memory_mb = self._running.pop(uuid)
            self._used_mb[host] -= memory_mb
            hosts.add(host)
        self._report(hosts)
        self.freed_at.update(dict.fromkeys(uuids, time.time()))
        self.counts["deleted"] += len(uuids)

    def _report(self, hosts: Iterable[str]) -> None:
        numbers = Counter(host for host, _mb in self._running.values())
        used = self._used_mb
        self._write(_REPORT, [(used[each], used[each], numbers[each], each) for each in hosts])

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            with self._connection.cursor() as cursor:
                cursor.executemany(statement, sorted(rows))
            self._connection.commit()
