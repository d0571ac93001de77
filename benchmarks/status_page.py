"""How long the status page takes to show a fleet in headless Chromium, and what that costs.

``python -m benchmarks.status_page [HOSTS] [--times N]``: a daemon's own page code on a table of
that many hosts (10,000), behind the daemon's HTTP server; prints and asserts nothing.
"""

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

from scheduler import concurrency, objects
from scheduler.concurrency import HubCalls
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.db.overview import Overview
from scheduler.explain.recorder import Recorder
from scheduler.hosts.host_manager import HostManager
from scheduler.status_page.fleet import FRESH_SECONDS, Fleet
from scheduler.status_page.live import LiveStatus
from scheduler.status_page.page import PATH, StatusPage
from scheduler.web import server
from scheduler.web.server import Routes, Server
from scheduler.web.workers import Workers
from tests.builders import a_conf, a_host
from tests.servers.chromium import Chromium

ZONES, RACKS = 3, 200
LIMIT_MS = 1000


class NoCells:
    """A fleet in one piece."""

    def cell_health(self) -> list[object]:
        return []


def a_manager(hosts: int) -> HostManager:
    """A host manager whose table has hosts in zones and racks, more or less full."""
    manager = HostManager(a_conf(), NoCells())
    manager.read_at = now = time.time()
    names = [f"cmp{number:06d}.example.org" for number in range(hosts)]
    manager.table.set_aggregates({name: rack_of(at) for at, name in enumerate(names)})
    for at, name in enumerate(names):
        busy = {"free_ram_mb": at * 37 % 4096, "vcpus_used": at % 64, "num_instances": at % 17}
        a_host(name, name, table=manager.table, last_seen=now, **busy)
    return manager


def rack_of(number: int) -> tuple[objects.Aggregate, ...]:
    """A zone and a rack."""
    zone = {"availability_zone": f"zone{number % ZONES}"}
    return (
        objects.Aggregate(id=1 + number % ZONES, name=f"zone{number % ZONES}", metadata=zone),
        objects.Aggregate(id=100 + number % RACKS, name=f"rack{number % RACKS}", metadata={}),
    )


@contextlib.contextmanager
def served(manager: HostManager) -> Iterator[str]:
    """The page of a worker with that host manager; its URL."""
    routes = Routes()
    driver = SimpleNamespace(host_manager=manager)
    databases = Databases(Database("sqlite://"))  # has no tables: no flavors are shown
    overview = Overview(databases, a_conf(), "nova-scheduler")
    live = LiveStatus(a_conf(), SimpleNamespace(driver=driver, recorder=Recorder()), overview)
    StatusPage(Workers(None), HubCalls(1.0), lambda: live).add_to(routes)
    with server.bind("127.0.0.1", 0, "port") as listening:
        serving = Server(listening, routes, "http")
        serving.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
        serving.stop()


def milliseconds(action: Callable[[], object], times: int) -> float:
    """CPU time of the fastest run."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        action()
        spent.append(time.process_time() - began)
    return 1000 * min(spent)


def shown_ms(url: str, times: int) -> list[float]:
    """From the navigation's start until heat map and lists are drawn, in a fresh page each time."""
    found = []
    with Chromium() as browser:
        browser.show(1280, 900)
        for _ in range(times):
            browser.open(url)
            browser.wait("performance.getEntriesByName('shown').length")
            found.append(float(browser.run("performance.getEntriesByName('shown')[0].startTime")))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("hosts", type=int, nargs="?", default=10_000)
    parser.add_argument("--times", type=int, default=10)
    wanted = parser.parse_args()
    concurrency.activate(concurrency.THREADING)
    manager = a_manager(wanted.hosts)
    seconds = iter(range(0, 10**9, 1 + int(FRESH_SECONDS)))
    fleet = Fleet(manager, lambda: next(seconds))
    version = fleet.changes("")["version"]
    costs = {
        "whole fleet as JSON": lambda: json.dumps(fleet.changes("")),
        "nothing new as JSON": lambda: json.dumps(fleet.changes(version)),
    }
    print(f"{wanted.hosts} hosts; the daemon's CPU time:")  # noqa: T201
    for what, action in costs.items():
        print(f"  {milliseconds(action, wanted.times):8.1f} ms  {what}")  # noqa: T201
    with served(manager) as url:
        shown = shown_ms(url, wanted.times)
    first, later = shown[0], statistics.median(shown[1:] or shown)
    print("in the browser, from navigation to everything drawn:")  # noqa: T201
    print(f"  {first:8.0f} ms  first  ({first / LIMIT_MS:.2f} of a second)")  # noqa: T201
    print(f"  {later:8.0f} ms  later, median  ({later / LIMIT_MS:.2f} of a second)")  # noqa: T201


if __name__ == "__main__":
    main()
