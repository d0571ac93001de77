"""The steps of the demo: what is asked of the cloud, and what must come of it."""

from typing import Any

import requests
from rich.console import Console

from tests.nova.cloud.compute_api import host_of
from tests.nova.cloud.whole import HOSTS, Cloud

ZONE, ZONE_HOSTS = "az-fast", HOSTS[1:]
FLAVORS = {"small": (512, 1), "medium": (1024, 2), "giant": (16384, 2)}
CALL_SECONDS = 10


class Unexpected(Exception):
    """Something came out as it must not."""


class Scenario:
    """One run on a cloud, told step by step."""

    def __init__(self, cloud: Cloud, console: Console) -> None:
        self._cloud, self._api, self._console = cloud, cloud.api, console

    def play(self) -> None:
        """All steps; raises Unexpected at the first that comes out otherwise."""
        self._prepare()
        self._boot()
        self._resize_and_revert()
        self._refuse()
        self._evacuate()
        self._show()
        self._delete()

    def _prepare(self) -> None:
        self._step(f"Three flavors; {' and '.join(ZONE_HOSTS)} become availability zone {ZONE}")
        for name, (ram, vcpus) in FLAVORS.items():
            self._api.create_flavor(name, ram, vcpus)
        self._api.create_zone(ZONE, *ZONE_HOSTS)

    def _boot(self) -> None:
        self._step("Boot two servers in one request")
        self._tell(self._api.boot("web", "small", 2))
        self._step(f"Boot one in availability zone {ZONE}")
        database = self._api.boot("db", "small", availability_zone=ZONE)
        self._tell(database)
        self._expect(host_of(database[0]) in ZONE_HOSTS, f"db is outside of {ZONE}")
        self._step("Boot two of a server group with anti-affinity")
        group = self._api.create_group("pair", "anti-affinity")
        pair = self._api.boot("pair", "small", 2, group)
        self._tell(pair)
        self._expect(len({host_of(each) for each in pair}) == 2, "the pair shares a host")

    def _resize_and_revert(self) -> None:
        before = host_of(self._api.server("web-1"))
        self._step(f"Resize web-1, which is on {before}")
        moved = self._api.act("web-1", "VERIFY_RESIZE", "resize", {"flavorRef": "medium"})
        self._tell([moved])
        self._expect(host_of(moved) != before, "web-1 was resized in its place")
        self._step("Revert it")
        back = self._api.act("web-1", "ACTIVE", "revertResize")
        self._expect(host_of(back) == before, f"web-1 is on {host_of(back)}")
        self._console.print(f"   web-1 is on {before} again")
        self._step("Resize it once more, and confirm")
        moved = self._api.act("web-1", "VERIFY_RESIZE", "resize", {"flavorRef": "medium"})
        self._tell([moved])
        self._api.act("web-1", "ACTIVE", "confirmResize")

    def _refuse(self) -> None:
        self._step("Boot one that is larger than any host")
        (giant,) = self._api.boot("giant", "giant")
        self._expect(giant["status"] == "ERROR", f"giant is {giant['status']}")
        self._console.print(f"   the user reads: {giant['fault']['message']}")
        self._tell([giant])

    def _evacuate(self) -> None:
        dead = host_of(self._api.server("db"))
        (spare,) = set(ZONE_HOSTS) - {dead}
        there = [name for name, each in self._api.servers().items() if host_of(each) == dead]
        self._step(f"Kill nova-compute of {dead}, evacuate its servers: {', '.join(sorted(there))}")
        self._cloud.programs[dead].kill()
        self._api.force_down(dead)
        for name in sorted(there):
            self._tell([self._api.act(name, "ACTIVE", "evacuate", {})])
        self._expect(host_of(self._api.server("db")) == spare, f"db is not on {spare}")
        pair = {host_of(self._api.server(f"pair-{number}")) for number in (1, 2)}
        self._expect(len(pair) == 2, "the pair shares a host")

    def _delete(self) -> None:
        self._step("Delete all servers")
        self._api.delete_all()
        providers = self._cloud.placement.call("GET", "/resource_providers")["resource_providers"]
        used = {each["name"]: self._cloud.placement.used(each["uuid"]) for each in providers}
        left = {host: amounts for host, amounts in used.items() if any(amounts.values())}
        self._expect(not left, f"Placement still has allocations: {left}")
        self._console.print("   Placement has no allocation left")

    def _show(self) -> None:
        giant = self._api.server("giant")["id"]
        for words in (("service", "list"), ("host", "list"), ("explain", giant)):
            self._step(f"nova-scheduler-manage {' '.join(words)}")
            self._console.out(self._cloud.manage(*words), highlight=False)
        self._step(f"The status page, {self._cloud.status_page}, lists these decisions")
        for line in decisions(self._cloud):
            self._console.print(f"   {line}")

    def _step(self, text: str) -> None:
        self._console.print(f"[bold]{text}[/bold]", highlight=False)

    def _tell(self, servers: list[dict[str, Any]]) -> None:
        """Say where each server is; and of all, as they were asked for at once, why."""
        for each in servers:
            place = f"on {host_of(each)}" if host_of(each) != "None" else "nowhere"
            self._console.print(f"   {each['name']} is {each['status']} {place}", highlight=False)
        cause = self._cloud.explained(servers[0])
        self._console.print(f"   explain: {cause}", style="dim", highlight=False)

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Unexpected(otherwise)


def decisions(cloud: Cloud) -> list[str]:
    """One line for each recent decision that the status page lists, the newest first."""
    live = requests.get(f"{cloud.status_page}/live", timeout=CALL_SECONDS).json()
    return [
        f"{each['num_instances']} server(s): {', '.join(each['hosts']) or each['cause']}"
        for worker in live["workers"]
        for each in worker["decisions"]["new"]
    ]
