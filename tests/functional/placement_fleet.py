"""Hosts in a database and in a real Placement, and scheduler workers on both."""

import functools
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from keystoneauth1 import loading

from conductor_stub.compute import registration
from scheduler import objects
from scheduler.daemon.service import build_manager
from scheduler.db import compute_nodes, services, tables
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.db.rows import utcnow
from tests.builders import a_conf, a_request, put_node
from tests.servers.placement import Placement
from tests.world import fleet as world_fleet

PROJECT, USER = "a" * 32, "b" * 32
MB, DISK_GB, VCPUS = 4096, 100, 16
OWNED = ("OWNER_NOVA",)
#: Twice the memory that Placement knows: Placement decides.
REPORT = {"memory_mb": 2 * MB, "free_ram_mb": 2 * MB, "ram_allocation_ratio": 1.0}


class Context:
    """As much of a request's context as a driver looks at."""

    project_id, user_id, global_request_id = PROJECT, USER, None

    def __init__(self, request_id: str, *, is_redelivered: bool = False) -> None:
        self.request_id = request_id
        self.is_redelivered = is_redelivered


class Fleet:
    """Hosts p1, p2, … in *database*, each with a provider in *placement* unless left out.

    *query* is how its schedulers ask.
    """

    def __init__(self, database: Database, placement: Placement, query: str = "chosen") -> None:
        self.database, self.placement, self.query = database, placement, query
        self.nodes: dict[str, str] = {}

    def add(self, host, *, known=True, report=None, **provider):
        """Add one host with a *report*; *provider* is what Placement knows of it.

        Returns the node's uuid.
        """
        with self.database.write() as conn:
            registration.put_services(conn, [host], 74)
            found = sa.select(tables.services.c.id).where(tables.services.c.host == host)
            services.heartbeat(conn, conn.execute(found).scalars().all(), utcnow())
            put_node(conn, host, host, {**world_fleet.node(host), **REPORT, **(report or {})})
            (node,) = [each for each in compute_nodes.list_all(conn) if each.host == host]
        self.nodes[host] = node.uuid
        if known:
            inventory = {"VCPU": VCPUS, "MEMORY_MB": MB, "DISK_GB": DISK_GB}
            inventory |= provider.pop("inventory", {})
            inventory = {name: total for name, total in inventory.items() if total}
            traits = [*OWNED, *provider.pop("traits", ())]
            self.placement.add_node(node.uuid, inventory, traits, **provider)
        return str(node.uuid)

    def instance(self, name: str, host: str | None, vm_state: str) -> None:
        values = {"uuid": name, "host": host, "node": host, "vm_state": vm_state, "deleted": 0}
        values |= {"memory_mb": 1, "created_at": utcnow(), "updated_at": utcnow()}
        with self.database.write() as conn:
            conn.execute(tables.instances.insert().values(**values))

    def take(self, host: str) -> None:
        """Somebody else takes all the memory of *host*."""
        allocation = {self.nodes[host]: {"resources": {"MEMORY_MB": MB}}}
        body = {"allocations": allocation, "project_id": PROJECT, "user_id": USER}
        body |= {"consumer_generation": None, "consumer_type": "INSTANCE"}
        self.placement.call("PUT", f"/allocations/{a_name()}", body)

    def host_of(self, name: str) -> list[str]:
        found = self.placement.allocations(name)
        return sorted(host for host, node in self.nodes.items() if node in found)

    def used_mb(self) -> dict[str, int]:
        return {host: self.placement.used(node)["MEMORY_MB"] for host, node in self.nodes.items()}


class Worker:
    """One scheduler worker with claims in Placement; *policy* is ``[filter_scheduler]``."""

    def __init__(self, database, settings, policy=None, **options):
        conf = a_conf(
            **{"enabled_filters": ["RamFilter"], **(policy or {})}, scheduler__claims="placement"
        )
        for name, value in options.items():
            conf.set_override(name, value, group="scheduler")
        plugin = loading.get_auth_plugin_conf_options(settings["auth_type"])
        conf.register_opts(plugin, group="placement")
        for name, value in settings.items():
            conf.set_override(name, value, group="placement")
        self.conf = conf
        self.driver = build_manager(conf, Databases(database)).driver
        #: Method and path of every call to Placement.
        self.calls: list[tuple[str, str]] = []
        adapter = self.driver.claims.client._adapter
        adapter.request = functools.partial(self._request, adapter.request)
        self.driver.claims.prepare()
        self.calls.clear()

    def _request(self, ask: Callable[..., Any], path: str, method: str, **more: Any) -> Any:
        self.calls.append((method, path))
        return ask(path, method, **more)

    def learn(self) -> None:
        """Wait until refusals have been looked into, which is done beside the requests."""
        self.driver.claims.memory._refusals.close(30)

    def asked_about(self) -> list[str]:
        """The nodes that Placement was asked about, one by one; empty texts for the fleet."""
        paths = [path.partition("?") for _method, path in self.calls]
        queries = [text for path, _mark, text in paths if path == "/allocation_candidates"]
        found = [urllib.parse.parse_qs(text).get("in_tree", [""])[0] for text in queries]
        self.calls.clear()
        return found

    def select(self, request_id, names, ram_mb=MB, **how):
        flavor = {"memory_mb": ram_mb, "root_gb": 1, "extra_specs": how.pop("extra_specs", {})}
        flavor |= how.pop("flavor", {})
        context: Any = Context(request_id, is_redelivered=how.pop("is_redelivered", False))
        spec = a_request(flavor=flavor, project_id=PROJECT, user_id=USER, **how)
        answer: list[list[objects.Selection]] = self.driver.select_destinations(
            context, spec, list(names), return_alternates=True
        )
        return answer

    def hosts(self, request_id, names, ram_mb=MB, **how):
        answer = self.select(request_id, names, ram_mb, **how)
        return [first.service_host for first, *_rest in answer]


def a_name() -> str:
    return str(uuid.uuid4())
