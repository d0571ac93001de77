"""A Nova's databases, its code in a process, and this project's scheduler on the same bus."""

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.conf.filter_scheduler import PLACEMENT_FILTERS
from tests.nova.databases import NovaDatabases, merged
from tests.nova.driver import NovaDriver
from tests.servers.rabbitmq import RabbitMQ
from tests.world.deployment import Deployment, Settings
from tests.world.process import Daemon

FILTERS = (*PLACEMENT_FILTERS, "AvailabilityZoneFilter", "RamFilter", "SameHostFilter")
SHARED: Settings = {
    "DEFAULT": {"service_down_time": 3600},  # nothing sends heartbeats for the hosts
    "filter_scheduler": {"enabled_filters": ",".join(FILTERS)},
}


def a_uuid() -> str:
    return str(uuid.uuid4())


@dataclass
class Deployed:
    """What a test of this folder works with; ``nova.do(...)`` runs Nova's code."""

    databases: NovaDatabases
    nova: NovaDriver
    deployment: Deployment
    daemon: Daemon
    bus: str

    def add_hosts(self, cell: str, *names: str, **columns: Any) -> None:
        """Register hosts with the same columns in a cell and map them."""
        for name in names:
            self.nova.do("fleet.add_host", cell=cell, name=name, columns=columns)
        self.nova.do("fleet.discover")

    def add_aggregate(self, name: str, metadata: Mapping[str, str], *hosts: str) -> int:
        """Create an aggregate through Nova's objects; returns its id."""
        number: int = self.nova.do("fleet.add_aggregate", name=name, metadata=metadata, hosts=hosts)
        return number

    def select(self, count: int = 1, alternates: bool = False, **demand: Any) -> list[Any]:
        """Selections for *count* new instances, as Nova's client got them."""
        wanted = {"uuids": [a_uuid() for _ in range(count)], **demand}
        answered: list[Any] = self.nova.do("calls.select", demand=wanted, alternates=alternates)
        return answered

    def hosts(self, count: int = 1, **demand: Any) -> list[str]:
        """The host chosen for each of *count* new instances."""
        return [selections[0]["host"] for selections in self.select(count, **demand)]


@contextlib.contextmanager
def deployed(
    tables: NovaDatabases,
    rabbitmq: RabbitMQ,
    folder: Path,
    settings: Settings | None = None,
) -> Iterator[Deployed]:
    """Nova's code and a scheduler, with *settings* of its own, on those databases."""
    vhost = rabbitmq.create_vhost()
    bus = rabbitmq.url(vhost)
    with contextlib.ExitStack() as stack:
        shared = merged(SHARED, {"DEFAULT": {"transport_url": bus}})
        made = tables.configured(folder, shared)
        nova = NovaDriver(made.python, made.config, folder / "nova.log")
        stack.callback(nova.close)
        of_ours = merged(shared, {"api_database": {"connection": made.api_url}}, settings or {})
        deployment = Deployment(folder / "scheduler", bus, made.cell_url, settings=of_ours)
        stack.callback(deployment.close)
        daemon = deployment.start_scheduler().wait_ready()
        yield Deployed(made, nova, deployment, daemon, bus)
