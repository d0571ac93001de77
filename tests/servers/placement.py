"""A private Placement service: the real one, on a database of its own."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.servers.private import LOOPBACK, PrivateServer

VERSION = "1.39"
#: A line for each call, where uwsgi serves.
LOGGED = "call: %(method) %(uri)"
# Its own retries take more than there is (docs/placement.md); callers have theirs.
_CONF = """
[DEFAULT]
use_stderr = true
[api]
auth_strategy = noauth2
[placement_database]
connection = {url}
[placement]
allocation_conflict_retry_count = 1
[oslo_policy]
policy_file = {policy}
{options}
"""
# Without a Keystone nobody has a role.
_RULES = ("admin_api", "service_api", "admin_or_service_api")


class Placement(PrivateServer):
    """Placement on the database at *url*, filled through its own REST API.

    With *processes* uwsgi serves it, and closes each connection after the answer; *options* are
    more lines of its file.
    """

    name = "placement"
    #: waitress takes a SIGTERM for what it is.
    stopped_code = -15

    def __init__(self, python: Path, url: str, processes: int = 0, options: str = "") -> None:
        super().__init__()
        self._processes, self._options = processes, options
        self.port = self.reserve_port()
        self._python = python
        self._url = url

    def set_up(self) -> None:
        policy = self.folder / "policy.yaml"
        policy.write_text("".join(f'"{name}": "@"\n' for name in _RULES), encoding="utf-8")
        url = self._url.replace("%", "%%")
        text = _CONF.format(url=url, policy=policy, options=self._options)
        (self.folder / "placement.conf").write_text(text, encoding="utf-8")
        manage = str(self._python.with_name("placement-manage"))
        self.run_tool([manage, "--config-dir", str(self.folder), "db", "sync"])

    def command(self) -> list[str]:
        application = "placement.wsgi.api:application"
        if self._processes:
            words = f"--http-socket {LOOPBACK}:{self.port} --master --need-app --die-on-term"
            words += f" --processes {self._processes} --module {application}"
            return [str(self._python.with_name("uwsgi")), *words.split(), "--log-format", LOGGED]
        serve = str(self._python.with_name("waitress-serve"))
        listen = f"--listen={LOOPBACK}:{self.port}"
        return [serve, listen, "--threads=16", application]

    def environment(self) -> dict[str, str]:
        return {"OS_PLACEMENT_CONFIG_DIR": str(self.folder)}

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.endpoint, timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """``[placement]`` of who is to use it."""
        return {"auth_type": "none", "endpoint_override": self.endpoint}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call as an operator; returns what is answered, raises OSError with the text."""
        request = urllib.request.Request(
            self.endpoint + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "X-Auth-Token": "admin",
                "OpenStack-API-Version": f"placement {VERSION}",
                "Content-Type": "application/json",
                "Accept": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            raise OSError(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def add_node(
        self,
        uuid: str,
        inventory: Mapping[str, int | Mapping[str, int]],
        traits: Iterable[str] = (),
        aggregates: Iterable[str] = (),
        parent: str | None = None,
    ) -> None:
        """Add a provider that has so much of each resource class; nothing is overcommitted.

        Instead of a total, a class may have an inventory of its own.
        """
        body = {"uuid": uuid, "name": uuid, "parent_provider_uuid": parent}
        self.call("POST", "/resource_providers", body)
        inventories = {
            name: {"total": each, "max_unit": each} if isinstance(each, int) else each
            for name, each in inventory.items()
        }
        path = f"/resource_providers/{uuid}"
        state = {"resource_provider_generation": 0, "inventories": inventories}
        generation = self.call("PUT", f"{path}/inventories", state)["resource_provider_generation"]
        for name in traits:
            if name.startswith("CUSTOM_"):
                self.call("PUT", f"/traits/{name}")
        state = {"resource_provider_generation": generation, "traits": list(traits)}
        generation = self.call("PUT", f"{path}/traits", state)["resource_provider_generation"]
        state = {"resource_provider_generation": generation, "aggregates": list(aggregates)}
        self.call("PUT", f"{path}/aggregates", state)

    def used(self, uuid: str) -> dict[str, int]:
        """How much of each class is allocated on a provider."""
        return dict(self.call("GET", f"/resource_providers/{uuid}/usages")["usages"])

    def allocations(self, consumer: str) -> dict[str, dict[str, int]]:
        found = self.call("GET", f"/allocations/{consumer}")["allocations"]
        return {uuid: each["resources"] for uuid, each in found.items()}
