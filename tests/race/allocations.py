"""The race where a real Placement keeps the claims: the fleet is filled to the last slot, emptied,
and filled again.

Hosts report that they are empty, whatever runs on them, so that all schedulers want the same ones.
"""

import contextlib
import logging
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.race.callers import Callers, Request, hosts_of
from tests.race.plan import SIZES_MB, Plan
from tests.race.schedulers import Schedulers
from tests.servers.mariadb import MariaDB
from tests.servers.placement import Placement
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.venvs import PLACEMENT
from tests.world import databases, fleet, machine, results

LOG = logging.getLogger("tests.race")
SLOT_MB: Final = SIZES_MB[0]
#: Requests for each slot of the fleet.
DEMAND: Final = 1.25
SHOWN, AT_ONCE = 5, 8


@dataclass
class Outcome:
    counts: Counter[str]
    #: What broke a promise, by the promise.
    wrong: Mapping[str, Sequence[object]]
    took_seconds: float


def race(plan: Plan) -> Outcome:
    """Run it; everything that was started ends with it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nst-race-")))
        broker, server = stack.enter_context(RabbitMQ()), stack.enter_context(MariaDB())
        books = server.url(server.create_database())
        placement = stack.enter_context(Placement(PLACEMENT.ensure(), books))
        url = server.url(server.create_database())
        return race_on(plan, folder, broker.url(), url, placement)


def race_on(
    plan: Plan, folder: Path, transport_url: str, database_url: str, placement: Placement
) -> Outcome:
    """Run it on servers that are there, and on an empty database."""
    hosts = [f"race{number}" for number in range(plan.hosts)]
    fleet.install(database_url, hosts)
    rows = databases.query(database_url, "SELECT uuid, host FROM compute_nodes")
    nodes = {row["uuid"]: row["host"] for row in rows}
    for node in nodes:
        placement.add_node(node, {"VCPU": 10_000, "MEMORY_MB": plan.host_mb, "DISK_GB": 1})
    settings = {"placement": placement.settings}
    schedulers = Schedulers(plan, folder, transport_url, database_url, settings)
    with contextlib.closing(schedulers):
        return _Race(plan, transport_url, schedulers, placement, nodes).run()


class _Race:
    def __init__(
        self,
        plan: Plan,
        transport_url: str,
        schedulers: Schedulers,
        placement: Placement,
        nodes: Mapping[str, str],
    ) -> None:
        self._plan, self._placement, self._nodes = plan, placement, nodes
        self._schedulers = schedulers
        self._slots = plan.fleet_mb // SLOT_MB
        self._ended: list[Request] = []
        self._callers = Callers(plan, transport_url, self._ended.append)
        self._wrong: dict[str, list[object]] = {
            "providers with more than they have": [],
            "allocations that no answer speaks of": [],
            "answers without their allocation": [],
            "refusals while a slot was free": [],
            "requests without an answer, or with another failure": [],
        }
        self._counts: Counter[str] = Counter()

    def run(self) -> Outcome:
        """Fill and empty the fleet until all requests were made."""
        began = time.monotonic()
        self._schedulers.begin()
        with contextlib.closing(self._callers):
            while self._counts["requests"] < self._plan.requests:
                self._fill()
                self._judge()
                LOG.info("%.0f s: %s", time.monotonic() - began, dict(self._counts))
        took_seconds = time.monotonic() - began
        self._schedulers.spare()
        self._wrong["tracebacks in the logs"] = [*self._schedulers.tracebacks()]
        counts = self._counts + self._callers.counts + self._schedulers.counts
        return Outcome(counts, self._wrong, took_seconds)

    def _fill(self) -> None:
        self._ended.clear()
        left = round(DEMAND * self._slots)
        while left or self._callers.waiting:
            while left and self._callers.waiting < self._plan.callers:
                self._callers.ask(Request(str(uuid.uuid4()), (str(uuid.uuid4()),), SLOT_MB))
                left -= 1
            self._callers.step()

    def _judge(self) -> None:
        """Compare what was answered with what Placement holds, which then holds nothing."""
        wrong, held = self._wrong, dict[str, dict[str, int]]()
        over, unspoken, missing, unjustified, failed = wrong.values()
        for node, host in self._nodes.items():
            path = f"/resource_providers/{node}/allocations"
            found = self._placement.call("GET", path)["allocations"]
            for server, each in found.items():
                held.setdefault(server, {})[host] = each["resources"]["MEMORY_MB"]
            used = sum(each["resources"]["MEMORY_MB"] for each in found.values())
            over += [(host, used)] if used > self._plan.host_mb else []
        for request in self._ended:
            (server,), answer = request.uuids, hosts_of(request.answer)
            promised = dict.fromkeys(answer, SLOT_MB)
            if promised and held.get(server) != promised:
                missing.append((server, answer, held.get(server)))
            elif not promised and server in held:
                unspoken.append((server, request.failure, held[server]))
            if request.failure not in (None, "NoValidHost"):
                failed.append((server, request.failure))
            self._counts[request.failure or "answered"] += 1
        unspoken += [(each,) for each in held.keys() - {each.uuids[0] for each in self._ended}]
        self._counts.update({"requests": len(self._ended), "times filled": 1})
        if len(held) < self._slots:
            unjustified.append((self._slots - len(held), "slots are free"))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._empty, held))

    def _empty(self, server: str) -> None:
        self._placement.call("DELETE", f"/allocations/{server}")


def render(plan: Plan, outcome: Outcome) -> str:
    """The table as text, then examples of what is wrong."""
    counts = outcome.counts
    facts: dict[str, Any] = {
        "requests": f"{counts['requests']} in {outcome.took_seconds:.0f} s",
        "times the fleet was filled": counts["times filled"],
        "answered, refused": f"{counts['answered']}, {counts['NoValidHost']}",
        "answers lost on the way": counts["answers that did not come in time"],
        "daemons killed": counts["daemons killed"],
    }
    rows = [(what, "", str(found), "") for what, found in facts.items()]
    rows += [
        (what, "0", str(len(found)), "BROKEN" if found else "kept")
        for what, found in outcome.wrong.items()
    ]
    lines = [
        f"{plan.daemons} daemons of {plan.workers} workers, claims in Placement, {plan.callers} "
        f"callers, {plan.hosts} hosts of {plan.host_mb // SLOT_MB} slots",
        machine.sentence(machine.notes()),
        "",
        results.table(("what", "promised", "found", ""), rows),
        "Promises were broken." if broken(plan, outcome) else "Every promise was kept.",
    ]
    for name, several in outcome.wrong.items():
        lines += [f"\n{name}:", *(f"  {each}" for each in several[:SHOWN])] if several else []
    return "\n".join(lines)


def broken(_plan: Plan, outcome: Outcome) -> bool:
    return any(outcome.wrong.values())
