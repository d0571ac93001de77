"""Two compute hosts on a database, and how orders reach them."""

from __future__ import annotations

import datetime
import random
import uuid
from typing import Any

from oslo_config import cfg

from conductor_stub.compute import profiles
from conductor_stub.compute.endpoints import ComputeEndpoint
from conductor_stub.compute.host import BuildSettings, Host
from conductor_stub.compute.hosts import ComputeHosts
from scheduler import objects
from scheduler.db import compute_nodes, instances
from scheduler.db.database import Database
from scheduler.rpc.context import RequestContext
from tests.unit.conductor_stub.compute.ends import Ends

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
PROFILE = profiles.Profile(
    (
        profiles.HostKind(
            "k",
            vcpus=4,
            memory_mb=4096,
            local_gb=100,
            availability_zone=("z1", "z2"),
            aggregates={"fast": {"ssd": "true"}},
        ),
    )
)


class Fleet:
    """Two hosts of 4 vCPUs, 4096 MB and 100 GB, and how orders reach them."""

    first, second = "h-01", "h-02"

    def __init__(self, conf: cfg.ConfigOpts, database: Database) -> None:
        self.database = database
        self.conf = conf
        self.by_name: dict[str, Host] = {}
        self.ends = Ends(conf, self.by_name)
        self.hosts = self.make()

    def make(self, pause: Any = None, **settings: Any) -> ComputeHosts:
        """The hosts in another setting; they are the same rows."""
        made = ComputeHosts(
            self.conf,
            self.database,
            self.ends,
            PROFILE.plan(2, "h"),
            BuildSettings(**settings),
            clock=lambda: NOW,
            luck=random.Random(7),
            pause=pause or (lambda seconds: None),
        )
        self.by_name.update(made.hosts)
        return made

    def order(self, hosts: ComputeHosts, instance: objects.Instance, **arguments: Any) -> None:
        """Have *instance* built on the first host."""
        endpoint = ComputeEndpoint(hosts.hosts[self.first], "6.5")
        values: dict[str, Any] = {
            "image": {"id": "i"},
            "request_spec": objects.RequestSpec(num_instances=1),
            "filter_properties": {
                "retry": {"num_attempts": 1, "hosts": [[self.first, self.first]]}
            },
            "node": self.first,
            "limits": {"memory_mb": 4096},
        }
        context = RequestContext(user_id="u", project_id="p")
        endpoint.build_and_run_instance(context, instance, **{**values, **arguments})

    def row(self, instance_uuid: str) -> objects.Instance:
        with self.database.read() as conn:
            return instances.get(conn, instance_uuid)

    def node(self, host: str | None = None) -> objects.ComputeNode:
        """The node of the first host, or another."""
        name = host or self.first
        with self.database.read() as conn:
            return compute_nodes.get(conn, name, name)


def an_instance(database: Database, **changes: Any) -> objects.Instance:
    """Insert an instance of 1 vCPU, 512 MB, 10 GB that waits for a host."""
    instance_uuid = str(uuid.uuid4())
    flavor = objects.Flavor(
        id=1, name="small", flavorid="s", memory_mb=512, vcpus=1, root_gb=10, ephemeral_gb=0, swap=0
    )
    values = {
        "uuid": instance_uuid,
        "vm_state": "building",
        "task_state": "scheduling",
        "vcpus": 1,
        "memory_mb": 512,
        "root_gb": 10,
        "ephemeral_gb": 0,
        "project_id": "p",
        "flavor": flavor,
    }
    instance = objects.Instance(**{**values, **changes})
    with database.write() as conn:
        instances.create(conn, instance)
    return instance
