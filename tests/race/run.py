"""One race from an empty fleet to the verdict, and its table: what was promised, what was found."""

import contextlib
import json
import logging
import random
import tempfile
import time
import uuid
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.race import journal, replay
from tests.race.callers import AnsweredHosts, Callers, Request, hosts_of
from tests.race.computes import NEW, Computes
from tests.race.plan import SIZES_MB, Plan
from tests.race.schedulers import Schedulers
from tests.servers.mariadb import MariaDB
from tests.servers.rabbitmq import RabbitMQ
from tests.world import fleet, machine, results
from tests.world.deployment import CommandFailed

LOG = logging.getLogger("tests.race")
TOLD_SECONDS = 10.0
#: How long nothing may have happened when a race is over.
QUIET_SECONDS = 3.0
NEW_AT_ONCE = 64
DOUBLED_RATE = 0.02
COUNT_OF_SERVERS = (1, 1, 1, 1, 1, 1, 1, 1, 2, 3)
FILLING, EDGE, EMPTYING = "filling", "full", "emptying"
#: After so many refusals in a row only the smallest servers are asked for.
REFUSALS: Final = 10
#: Share of the fleet that may be left when filling begins again; hosts per server deleted at once.
EMPTY: Final = 0.05
AT_ONCE: Final = 8
SHOWN: Final = 5
MAY_RESCHEDULE: Final = 0.001

Row = tuple[str, str, str, bool | None]
"""What, promised, found, and whether the promise was kept (None: nothing was promised)."""


@dataclass
class Outcome:
    requests: list[Request]
    counts: Counter[str]
    #: What broke a promise, by the promise.
    wrong: Mapping[str, Sequence[object]]
    tracebacks: list[str]
    took_seconds: float
    most_mb: int
    double_bookings: int
    worst_mb: int


def race(plan: Plan) -> Outcome:
    """Run it; everything that was started ends with it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nst-race-")))
        broker = stack.enter_context(RabbitMQ())
        server = stack.enter_context(MariaDB())
        return race_on(plan, folder, broker.url(), server.url(server.create_database()))


def race_on(plan: Plan, folder: Path, transport_url: str, database_url: str) -> Outcome:
    """Run it on servers that are there, and on an empty database of MariaDB."""
    install(database_url, plan)
    with contextlib.closing(Schedulers(plan, folder, transport_url, database_url)) as schedulers:
        return _Race(plan, transport_url, database_url, schedulers).run()


def install(database_url: str, plan: Plan) -> None:
    """The hosts, empty, and the journal."""
    fleet.install(
        database_url,
        [f"cmp{number}" for number in range(1, plan.hosts + 1)],
        vcpus=10_000,
        memory_mb=plan.host_mb,
        free_ram_mb=plan.host_mb,
        memory_mb_used=0,
        ram_allocation_ratio=1.0,
    )
    journal.begin(database_url)


class Cycle:
    """What to ask for next, and when to delete: fill the fleet, keep it full, empty it, again."""

    def __init__(self, plan: Plan, computes: Computes, rng: random.Random) -> None:
        self._plan = plan
        self._computes = computes
        self._rng = rng
        self._latest: deque[bool] = deque(maxlen=REFUSALS)
        self._at_edge = 0
        self.phase = FILLING
        self.counts: Counter[str] = Counter()

    def next_size(self) -> tuple[int, bool]:
        """Memory of the next server in MiB, and whether several may be asked for at once."""
        if self.phase == FILLING and self._latest and all(self._latest):
            return SIZES_MB[0], False
        return self._rng.choice(SIZES_MB), True

    def after(self, request: Request) -> None:
        """Go on to the next phase where it is time; delete what has to go."""
        self._latest.append(request.failure == "NoValidHost")
        if self.phase == FILLING:
            self._fill(request)
        elif self.phase == EDGE:
            self._keep_full()
        else:
            self._empty()

    def _fill(self, request: Request) -> None:
        if self._computes.used_mb >= self._plan.fleet_mb:
            self.counts["times full to the last MiB"] += 1
            self.phase, self._at_edge = EDGE, 0
        elif request.memory_mb == SIZES_MB[0] and request.failure == "NoValidHost":
            self._at_edge += 1
            if self._at_edge > self._plan.callers:  # what is left is promised to nobody that comes
                self.phase, self._at_edge = EDGE, 0

    def _keep_full(self) -> None:
        self._at_edge += 1
        if self._rng.random() < 1 / 2:
            self._computes.delete(1)
        if self._at_edge >= self._plan.edge_requests:
            self.phase = EMPTYING

    def _empty(self) -> None:
        self._computes.delete(max(1, self._plan.hosts // AT_ONCE))
        if self._computes.used_mb <= EMPTY * self._plan.fleet_mb:
            self.counts["times empty again"] += 1
            self.phase, self._at_edge = FILLING, 0


class _Race:
    """The loop that keeps all callers busy."""

    def __init__(
        self, plan: Plan, transport_url: str, database_url: str, schedulers: Schedulers
    ) -> None:
        self._plan = plan
        self._url = database_url
        self._schedulers = schedulers
        self._rng = random.Random(plan.seed)
        self._answered = AnsweredHosts(plan.host_mb)
        self._computes = Computes(plan, database_url, self._answered)
        self._connection = journal.connect(database_url)
        self._callers = Callers(plan, transport_url, self._ended)
        self._cycle = Cycle(plan, self._computes, self._rng)
        self._new: list[Request] = []
        self._requests: list[Request] = []
        self._done = 0

    def run(self) -> Outcome:
        """All requests, then the end of everything that is under way."""
        began = time.monotonic()
        self._schedulers.begin()
        told_at = began
        while self._goes_on or self._callers.waiting or self._computes.is_busy:
            self._keep_busy()
            self._callers.step()
            self._computes.check()
            if time.monotonic() - told_at > TOLD_SECONDS:
                told_at = time.monotonic()
                self._tell(told_at - began)
        took_seconds = time.monotonic() - began
        return self._close(took_seconds)

    @property
    def _goes_on(self) -> bool:
        """True while there are requests to make, or something is still to break."""
        return len(self._requests) < self._plan.requests or self._schedulers.breaker.is_alive()

    def _keep_busy(self) -> None:
        while self._callers.waiting < self._plan.callers:
            if self._computes.again:
                server, memory_mb = self._computes.again.popleft()
                self._ask(Request(str(uuid.uuid4()), (server,), memory_mb))
            elif self._goes_on:
                self._ask(self._next())
            else:
                return

    def _ask(self, request: Request) -> None:
        self._requests.append(request)
        self._callers.ask(request)

    def _next(self) -> Request:
        if not self._new:
            self._new = [self._a_request() for _number in range(NEW_AT_ONCE)]
            servers = [(one, each.memory_mb) for each in self._new for one in each.uuids]
            with self._connection.cursor() as cursor:
                cursor.executemany(NEW, servers)
        return self._new.pop()

    def _a_request(self) -> Request:
        memory_mb, several = self._cycle.next_size()
        count = self._rng.choice(COUNT_OF_SERVERS) if several else 1
        uuids = tuple(str(uuid.uuid4()) for _number in range(count))
        is_doubled = self._rng.random() < DOUBLED_RATE
        return Request(str(uuid.uuid4()), uuids, memory_mb, is_doubled)

    def _ended(self, request: Request) -> None:
        self._done += 1
        for server, host in zip(request.uuids, hosts_of(request.answer), strict=False):
            self._answered.promise(server, host, request.memory_mb)
        self._computes.take(request)
        self._cycle.after(request)

    def _tell(self, seconds: float) -> None:
        LOG.info(
            "%d requests, %.0f/s, %d %% of the fleet in use (%s), %d kills, %d rescheduled, "
            "%d double bookings",
            self._done,
            self._done / seconds,
            100 * self._computes.used_mb // self._plan.fleet_mb,
            self._cycle.phase,
            self._schedulers.counts["kills"],
            self._computes.counts["rescheduled"],
            self._answered.double_bookings,
        )

    def _close(self, took_seconds: float) -> Outcome:
        self._schedulers.spare()
        self._computes.finish()
        self._connection.close()
        self._wait_for_the_end_of_claims()
        self._callers.close()
        lines = journal.read(self._url)
        counts = self._callers.counts + self._computes.counts + self._schedulers.counts
        counts += self._cycle.counts
        wrong: dict[str, Sequence[object]] = {
            **replay.judge(
                self._plan,
                self._requests,
                lines,
                self._computes.freed_at,
                journal.end_state(self._url),
            ),
            "differences that `claims audit` names": self._audit(),
        }
        return Outcome(
            self._requests,
            counts,
            wrong,
            self._schedulers.tracebacks(),
            took_seconds,
            self._computes.most_mb,
            self._answered.double_bookings,
            self._answered.worst_mb,
        )

    def _wait_for_the_end_of_claims(self) -> None:
        """Until no claim is open, and none comes any more for requests that were given up."""
        until = time.monotonic() + self._plan.settle_seconds
        seen, since = 0, time.monotonic()
        while time.monotonic() < until:
            self._callers.step()
            latest = journal.latest(self._url)
            if latest != seen or self._callers.unread() or journal.open_claims(self._url):
                seen, since = latest, time.monotonic()
            elif time.monotonic() - since > QUIET_SECONDS:
                return
            time.sleep(0.5)

    def _audit(self) -> list[dict[str, object]]:
        deployment = self._schedulers.deployment
        try:
            return deployment.manage("claims", "audit")
        except CommandFailed as failed:
            found: list[dict[str, object]] = json.loads(failed.stdout)
            return found


def render(plan: Plan, outcome: Outcome) -> str:
    """The table as text, then examples of what is wrong."""
    lines = [
        f"{plan.daemons} daemons of {plan.workers} workers, claims = {plan.claims}, "
        f"{plan.callers} callers, {plan.hosts} hosts of {plan.host_mb} MiB",
        machine.sentence(machine.notes()),
        "",
    ]
    marks = {True: "kept", False: "BROKEN", None: ""}
    cells = [(*words, marks[is_kept]) for *words, is_kept in rows(plan, outcome)]
    lines += [results.table(("what", "promised", "found", ""), cells)]
    verdict = (
        f"Without claims: {outcome.double_bookings} answers promised a host beyond its memory, "
        f"{outcome.counts['rescheduled']} servers were sent back."
    )
    if plan.claims != "none":
        wrong = [what for what, *_words, is_kept in rows(plan, outcome) if is_kept is False]
        verdict = f"BROKEN: {'; '.join(wrong)}." if wrong else "Every promise was kept."
    lines += ["", verdict]
    for name, several in {**outcome.wrong, "tracebacks": outcome.tracebacks}.items():
        lines += [f"\n{name}:", *(f"  {each}" for each in several[:SHOWN])] if several else []
    return "\n".join(lines)


def broken(plan: Plan, outcome: Outcome) -> bool:
    return any(is_kept is False for *_words, is_kept in rows(plan, outcome))


def rows(plan: Plan, outcome: Outcome) -> list[Row]:
    doubled, counts = outcome.double_bookings, outcome.counts
    share = counts["rescheduled"] / max(1, counts["builds"])
    worst = f", by up to {outcome.worst_mb} MiB" if doubled else ""
    beyond = "answers that promise a host beyond its memory"
    sent_back = "servers that a host sent back as full"
    text = f"{counts['rescheduled']} ({100 * share:.2f} %)"
    promises: list[Row] = [
        *((what, "0", str(len(found)), not found) for what, found in outcome.wrong.items()),
        (beyond, "0", f"{doubled}{worst}", not doubled),
        (sent_back, "≤ 0.1 %", text, share <= MAY_RESCHEDULE),
    ]
    if plan.claims == "none":
        promises = [(what, "", found, None) for what, _promised, found, _kept in promises]
    tracebacks = ("tracebacks in the logs", "", str(len(outcome.tracebacks)), None)
    return [*_course(plan, outcome), *promises, tracebacks]


def _course(plan: Plan, outcome: Outcome) -> list[Row]:
    counts, requests = outcome.counts, outcome.requests
    ends = Counter(each.failure or "answered" for each in requests)
    rate = len(requests) / outcome.took_seconds
    facts = {
        "requests": f"{len(requests)} in {outcome.took_seconds:.0f} s, {rate:.0f}/s",
        "answered, refused, timed out": f"{ends['answered']}, {ends['NoValidHost']}, "
        f"{ends['timeout']}",
        "answers lost on the way": f"{counts['answers that did not come in time']}, "
        f"{counts['answers that came too late']} came too late",
        "schedulers killed": f"{counts['kills']}, {counts['daemons killed']} of them with all "
        "their workers",
        "workers stopped, times the claims went back": f"{counts['workers stopped']}, "
        f"{counts['times the claims went back']}",
        "fullest": f"{100 * outcome.most_mb / plan.fleet_mb:.2f} % of {plan.fleet_mb} MiB; "
        f"{counts['times full to the last MiB']} times full, {counts['times empty again']} times "
        "empty again",
        "builds": f"{counts['builds']}, {counts['builds that failed']} failed, "
        f"{counts['alternates taken']} went to alternates; {counts['deleted']} servers deleted",
    }
    return [(what, "", found, None) for what, found in facts.items()]
