"""A client of Nova's compute API, as an administrator who needs no token."""

from typing import Any

import requests

from tests.nova.cloud.stand_ins import IMAGE
from tests.waiting import wait_until

#: Before 2.95, which leaves an evacuated server stopped.
VERSION = "2.94"
CALL_SECONDS = 120
SETTLED_SECONDS = 120
_WHO = {
    "OpenStack-API-Version": f"compute {VERSION}",
    "X-Auth-Token": "demo",
    "X-User-Id": "demo",
    "X-Project-Id": "demo",
    "X-Roles": "admin,manager,member,reader",
}


class ComputeApi:
    """Calls, and what is built on them; raises RuntimeError with what the API says."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._session = requests.Session()
        self._session.headers.update(_WHO)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's body; None if there is none."""
        url = f"{self._endpoint}{path}"
        answer = self._session.request(method, url, json=body, timeout=CALL_SECONDS)
        if not answer.ok:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def create_flavor(self, name: str, ram: int, vcpus: int, disk: int = 1) -> None:
        """Its id is its name."""
        flavor = {"id": name, "name": name, "ram": ram, "vcpus": vcpus, "disk": disk}
        self.call("POST", "/flavors", {"flavor": flavor})

    def create_zone(self, name: str, *hosts: str) -> None:
        """An aggregate that is the availability zone of *hosts*."""
        body = {"aggregate": {"name": name, "availability_zone": name}}
        number = self.call("POST", "/os-aggregates", body)["aggregate"]["id"]
        for host in hosts:
            self.call("POST", f"/os-aggregates/{number}/action", {"add_host": {"host": host}})

    def create_group(self, name: str, policy: str) -> str:
        body = {"server_group": {"name": name, "policy": policy}}
        made: str = self.call("POST", "/os-server-groups", body)["server_group"]["id"]
        return made

    def boot(
        self, name: str, flavor: str, count: int = 1, group: str | None = None, **more: Any
    ) -> list[dict[str, Any]]:
        """Servers without a port; waits until each is active or failed."""
        server = {"name": name, "flavorRef": flavor, "imageRef": IMAGE, "networks": "none", **more}
        body: dict[str, Any] = {"server": {**server, "min_count": count, "max_count": count}}
        if group:
            body["os:scheduler_hints"] = {"group": group}
        self.call("POST", "/servers", body)
        names = [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]
        return [self.settled(each, "ACTIVE", "ERROR") for each in names]

    def act(self, name: str, state: str, action: str, what: Any = None) -> dict[str, Any]:
        """Ask for something on a server; waits until it is over and the server in *state*."""
        self.call("POST", f"/servers/{self.server(name)['id']}/action", {action: what})
        return self.settled(name, state)

    def settled(self, name: str, *states: str) -> dict[str, Any]:
        """A server, as soon as nothing is under way on it and it is in one of *states*."""

        def look() -> dict[str, Any] | None:
            seen = self.server(name)
            if seen["status"] == "ERROR" and "ERROR" not in states:
                raise RuntimeError(f"{name} failed: {seen.get('fault')}")
            is_over = seen["status"] in states and not seen["OS-EXT-STS:task_state"]
            return seen if is_over else None

        return wait_until(look, SETTLED_SECONDS, lambda: f"{name} in {states}: {self.server(name)}")

    def servers(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in self.call("GET", "/servers/detail")["servers"]}

    def server(self, name: str) -> dict[str, Any]:
        return self.servers()[name]

    def delete_all(self) -> None:
        """Delete every server; waits until they are gone."""
        for server in self.servers().values():
            self.call("DELETE", f"/servers/{server['id']}")
        wait_until(lambda: not self.servers(), SETTLED_SECONDS, lambda: f"{self.servers()}")

    def force_down(self, host: str) -> None:
        """Say that a host is dead, as whoever has fenced it does."""
        (service,) = self.call("GET", f"/os-services?binary=nova-compute&host={host}")["services"]
        self.call("PUT", f"/os-services/{service['id']}", {"forced_down": True})


def host_of(server: dict[str, Any]) -> str:
    return str(server["OS-EXT-SRV-ATTR:host"])
