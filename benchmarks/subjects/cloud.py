"""Calls to a scheduler whose claims a real Placement keeps, and what the claims alone cost."""

import http.client
import itertools
import json
import random
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

from benchmarks import cloud, fleet, leaks, requests
from benchmarks.caller import Caller
from benchmarks.sample import Sample
from benchmarks.session import Session
from benchmarks.subjects.bus import POOL
from benchmarks.workload import Settings
from tests.servers.placement import Placement
from tests.servers.private import LOOPBACK

VERSION = "placement 1.36"
QUESTION, LIST_OR_QUESTION = "in_tree=", "GET /allocation_candidates"


class _OnPlacement:
    """A cloud, and a Placement that counts its calls."""

    def __init__(self, settings: Settings, session: Session) -> None:
        self.plan = fleet.FleetPlan(**settings["fleet"])
        devices = settings["requests"] == "nested-devices"
        self.cloud = cloud.cloud(session, self.plan, devices=devices)
        self.concurrency = settings["concurrency"]
        self.placement: Placement = cloud.placement(
            session, self.cloud, settings["processes"], settings.get("wide", False)
        )
        self._read = 0

    def calls(self) -> list[str]:
        """The calls to Placement since the last time, by method and path."""
        with self.placement.log_path.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._read)
            lines = log.readlines()
            self._read = log.tell()
        return [line.removeprefix("call: ") for line in lines if line.startswith("call: ")]

    def counted(self, pieces: int) -> dict[str, float]:
        """Calls for each of so many *pieces* of work."""
        calls = self.calls()
        asked = [each for each in calls if each.startswith(LIST_OR_QUESTION)]
        questions = sum(QUESTION in each for each in asked)
        counts = {"calls": len(calls), "questions": questions, "lists": len(asked) - questions}
        return {name: count / pieces for name, count in counts.items()}

    def close(self) -> None:
        """Take claims back; the servers end with the session."""
        cloud.forget(self.cloud)


class CloudCalls(_OnPlacement):
    """A closed loop of calls to ``server`` (``ours`` or ``nova``), with alternates.

    ``query`` is [scheduler] placement_query, and ``servers`` how many each call is for.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        super().__init__(settings, session)
        shared = {name: settings.get(name) for name in ("server", "query", "processes", "wide")}
        claims: dict[str, dict[str, Any]] = {
            "scheduler": {"claims": settings.get("claims", "placement")},
            "placement": {**self.placement.settings, "timeout": 60},
        }
        if query := settings.get("query"):
            claims["scheduler"]["placement_query"] = query
        key = f"cloud bus {shared} {claims} {settings.get('options')} {self.plan}"
        broker = session.rabbitmq
        url = session.once(key, lambda _ending: broker.url(broker.create_vhost()))
        self._pids = cloud.scheduler(settings, session, self.cloud, claims, url)
        kind, servers = requests.KINDS[settings["requests"]], settings.get("servers", 1)
        specs = [kind(number, self.plan) for number in range(POOL)]
        for each in specs:
            each.num_instances, each.requested_resources = servers, []
        is_refused = settings["requests"] == "impossible"
        self._caller = Caller(url, specs, servers, takes_refusals=is_refused)

    def warm_up(self) -> None:
        """Until every worker has answered, by all likelihood."""
        for _worker in range(3):
            self._caller.ask()

    def round(self, seconds: float) -> Sample:
        """Calls for *seconds*."""
        cloud.forget(self.cloud)
        self.calls()
        latencies, elapsed = self._caller.closed_loop(self.concurrency, seconds)
        return Sample(latencies, elapsed, len(latencies), more=self.counted(len(latencies)))

    def pids(self) -> Sequence[int]:
        """The scheduler's processes."""
        return [each for pid in self._pids for each in leaks.family(pid)]

    def close(self) -> None:
        self._caller.close()
        super().close()


class BareClaims(_OnPlacement):
    """One question about a random host, and the claim of its answer, over and over."""

    def __init__(self, settings: Settings, session: Session) -> None:
        super().__init__(settings, session)
        self._rng = random.Random(3)
        self._names = itertools.count()

    def warm_up(self) -> None:
        """Once."""
        self._claim()

    def round(self, seconds: float) -> Sample:
        """As many callers as ``concurrency``."""
        cloud.forget(self.cloud)
        self.calls()
        began = time.perf_counter()

        def claim_again(_caller: int) -> list[float]:
            latencies = []
            while not latencies or time.perf_counter() - began < seconds:
                started = time.perf_counter()
                self._claim()
                latencies.append(time.perf_counter() - started)
            return latencies

        with ThreadPoolExecutor(self.concurrency) as pool:
            several = list(pool.map(claim_again, range(self.concurrency)))
        elapsed = time.perf_counter() - began
        latencies = list(itertools.chain(*several))
        return Sample(latencies, elapsed, len(latencies), more=self.counted(len(latencies)))

    def _claim(self) -> None:
        node = str(uuid.UUID(int=(2 << 64) + self._rng.randrange(self.plan.hosts)))
        query = {"resources": "DISK_GB:20,MEMORY_MB:2048,VCPU:1", "in_tree": node, "limit": 1}
        query["root_required"] = "OWNER_NOVA,!COMPUTE_STATUS_DISABLED"
        _status, answer = self._call("GET", f"/allocation_candidates?{urlencode(query)}")
        if not answer["allocation_requests"]:
            return  # the host is full
        body = {**answer["allocation_requests"][0], "project_id": "a", "user_id": "b"}
        path = f"/allocations/{uuid.uuid4()}"
        status, answer = self._call("PUT", path, {**body, "consumer_generation": None})
        if status not in (http.HTTPStatus.NO_CONTENT, http.HTTPStatus.CONFLICT):
            raise RuntimeError(f"{status}: {answer}")

    def _call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(LOOPBACK, self.placement.port, timeout=60)
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": VERSION}
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text) if text else None

    def pids(self) -> Sequence[int]:
        """None of its own."""
        return ()
