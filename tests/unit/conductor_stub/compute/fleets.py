"""Two compute hosts on a database, how orders reach them, and whom they tell, without a bus."""

import datetime
import random
import uuid
from typing import Any

from oslo_config import cfg

from conductor_stub import server_rows
from conductor_stub.alternates import Claims
from conductor_stub.compute import profiles
from conductor_stub.compute.endpoints import ComputeEndpoint
from conductor_stub.compute.host import BuildSettings, Clients, Host
from conductor_stub.compute.hosts import ComputeHosts
from conductor_stub.records import MoveRequest, Order
from scheduler import objects
from scheduler.db import compute_nodes, instances
from scheduler.db.database import Database
from scheduler.rpc.context import RequestContext
from tests.builders import a_conf

CONTEXT = RequestContext(user_id="u", project_id="p")
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
FIRST, SECOND = HOSTS = "h-01", "h-02"
KIND = profiles.HostKind(
    "k",
    vcpus=4,
    memory_mb=4096,
    local_gb=100,
    availability_zone=("z1", "z2"),
    aggregates={"fast": {"ssd": "true"}},
)
SIZES = {"vcpus": 1, "memory_mb": 512, "root_gb": 10, "ephemeral_gb": 0}


def flavor(**changes: Any) -> objects.Flavor:
    """1 vCPU, 512 MB and 10 GB unless changed."""
    values = {"id": 1, "name": "small", "flavorid": "s", "swap": 0, **SIZES}
    return objects.Flavor(**{**values, **changes})


class Ends(Clients):
    """Keeps what conductor and schedulers are told; *hosts* do at once what they are told."""

    def __init__(self, conf: cfg.ConfigOpts, hosts: dict[str, Host]) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self.moves: dict[str, dict[str, Any]] = {}
        #: The fanouts, as tuples of their kind, their host (or aggregate) and the rest.
        self.news: list[tuple[str, str, Any]] = []
        self.conductor = self.scheduler = self.compute = self  # type: ignore[assignment]
        self.claims = Claims()
        self._hosts = hosts
        self._notifies = conf.filter_scheduler.track_instance_changes

    def build_instances(self, order: Order, instances: Any, properties: Any, **later: Any) -> None:
        kept = {"instances": instances, "filter_properties": properties, **vars(order), **later}
        self.orders[instances[0].uuid] = kept

    def move_elsewhere(self, request: MoveRequest) -> None:
        kept = {**request.arguments(), "host_list": request.host_list}
        self.moves[request.instance.uuid] = kept

    def cast(self, context: RequestContext, host: str, method: str, **arguments: Any) -> None:
        getattr(ComputeEndpoint(self._hosts[host], "6.5"), method)(context, **arguments)

    def fanout(self, context: RequestContext, method: str, **told: Any) -> None:
        assert context.is_admin
        if method == "update_aggregates":
            self.news += [("aggregate", a.name, sorted(a.hosts)) for a in told["aggregates"]]
        elif method == "update_instance_info":
            self.news.append(("update", told["host_name"], [i.uuid for i in told["instance_info"]]))
        else:
            host, rest = told.values()
            self.news.append((method.partition("_")[0], host, rest))


class Fleet:
    """Two hosts of 4 vCPUs, 4096 MB (512 of them reserved) and 100 GB."""

    def __init__(self, database: Database, **options: Any) -> None:
        self.database = database
        self.conf = a_conf(**options)
        self.by_name: dict[str, Host] = {}
        self.ends = Ends(self.conf, self.by_name)
        self.hosts = self.make()
        self.hosts.register()

    def make(self, pause: Any = None, **settings: Any) -> ComputeHosts:
        """The hosts in another setting; they are the same rows."""
        made = ComputeHosts(
            self.conf,
            self.database,
            self.ends,
            profiles.Profile((KIND,)).plan(2, "h"),
            BuildSettings(**settings),
            clock=lambda: NOW,
            luck=random.Random(7),
            pause=pause or (lambda seconds: None),
        )
        self.by_name.update(made.hosts)
        return made

    def order(self, hosts, instance, method="build_and_run_instance", host=FIRST, **arguments):
        """Have *method* done to *instance*; what a build needs besides is filled in."""
        if method == "build_and_run_instance":
            retry = {"retry": {"num_attempts": 1, "hosts": [[host, host]]}}
            spec = objects.RequestSpec(num_instances=1)
            values = {"image": {"id": "i"}, "request_spec": spec, "filter_properties": retry}
            arguments = {**values, "node": host, **arguments}
        endpoint = ComputeEndpoint(hosts.hosts[host], "6.5")
        getattr(endpoint, method)(CONTEXT, instance, **arguments)

    def row(self, instance_uuid: str) -> objects.Instance:
        with self.database.read() as conn:
            return instances.get(conn, instance_uuid)

    def fault(self, instance_uuid: str) -> str:
        with self.database.read() as conn:
            return str(server_rows.latest_faults(conn, [instance_uuid])[instance_uuid].message)

    def node(self, name: str = FIRST) -> Any:
        with self.database.read() as conn:
            return compute_nodes.list_all(conn, name)[0]


def an_instance(database: Database, **changes: Any) -> objects.Instance:
    """Insert an instance of 1 vCPU, 512 MB, 10 GB that waits for a host."""
    values = {
        "uuid": str(uuid.uuid4()),
        "vm_state": "building",
        "task_state": "scheduling",
        "project_id": "p",
        "flavor": flavor(),
        **SIZES,
    }
    instance = objects.Instance(**{**values, **changes})
    with database.write() as conn:
        server_rows.create_instance(conn, instance)
    return instance
