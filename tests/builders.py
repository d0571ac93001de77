"""Hosts, fleets and requests for tests: say only what the test is about.

A host is, unless told otherwise, ``h1``/``n1`` with 4 vCPUs, 4096 MB and 100 GB, all free, ratios
16.0, 1.5 and 1.0, in no aggregate, able to run x86_64 on KVM 2.5.0, enabled and just heard from.
"""

import datetime
import json
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from oslo_config import cfg
from sqlalchemy import Connection

from scheduler import conf as options
from scheduler import objects
from scheduler.db import compute_nodes
from scheduler.engine.evaluation import FilterChain, weigh
from scheduler.filters.base import HostFilter
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.host_state import HostState
from scheduler.hosts.instances import TrackedInstance
from scheduler.hosts.table import HostTable
from scheduler.semantics import CURRENT
from scheduler.weights.base import HostWeigher

NOW = 1_800_000_000.0
OWN_UUID = "00000000-0000-4000-a000-000000000001"

HOST: dict[str, Any] = {
    "total_usable_ram_mb": 4096,
    "free_ram_mb": 4096,
    "total_usable_disk_gb": 100,
    "free_disk_mb": 100 * 1024,
    "vcpus_total": 4,
    "vcpus_used": 0,
    "num_instances": 0,
    "num_io_ops": 0,
    "cpu_allocation_ratio": 16.0,
    "ram_allocation_ratio": 1.5,
    "disk_allocation_ratio": 1.0,
    "hypervisor_version": 2005000,
    "supported_instances": [["x86_64", "kvm", "hvm"]],
    "reported": True,
}
FLAVOR: dict[str, Any] = {
    "name": "m1.tiny",
    "memory_mb": 512,
    "vcpus": 1,
    "root_gb": 1,
    "ephemeral_gb": 0,
    "swap": 0,
    "extra_specs": {},
}


def examples(count: int) -> int:
    """So many examples of a property, and many more at night."""
    return count * int(os.environ.get("EXAMPLES_TIMES", "1"))


def a_conf(**filter_scheduler: Any) -> cfg.ConfigOpts:
    """Every option at its default, except those of ``[filter_scheduler]`` given."""
    conf = cfg.ConfigOpts()
    options.register_all(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    for name, value in filter_scheduler.items():
        conf.set_override(name, value, group="filter_scheduler")
    return conf


def a_host(
    host: str = "h1",
    node: str = "n1",
    *,
    table: HostTable | None = None,
    aggregates: list[dict[str, str]] | None = None,
    instances: list[str] | None = None,
    service: dict[str, Any] | None = None,
    last_seen: float = NOW,
    **columns: Any,
) -> HostState:
    """Put one host into *table* (or one of its own).

    *aggregates* is the metadata of each, *instances* the uuids on the host, *service* its
    service record.  Documents may be given as the values their JSON text stands for.
    """
    table = HostTable() if table is None else table
    if aggregates:
        known = dict(table.aggregates_of_host)
        known[host] = tuple(
            objects.Aggregate(id=number, uuid=f"u{number}", name=f"a{number}", metadata=metadata)
            for number, metadata in enumerate(aggregates, 1)
        )
        table.set_aggregates(known)
    table.set_service(host, {"host": host, "disabled": False, **(service or {})}, last_seen)
    values = {"node_id": len(table) + 1, **HOST, **columns}
    documents = {
        name: json.dumps(value)
        for name, value in values.items()
        if name in table.pools and isinstance(value, dict | list)
    }
    row = table.put((host, node), {**values, **documents})
    for uuid in instances or ():
        table.put_instance(host, uuid, TrackedInstance(uuid, host, node))
    return Scope(table, NOW, 60.0).state(row)


def a_fleet(*hosts: dict[str, Any]) -> HostTable:
    """A table of hosts h1/n1, h2/n2, …, each with the columns given for it."""
    table = HostTable()
    for number, host in enumerate(hosts, 1):
        a_host(**{"host": f"h{number}", "node": f"n{number}", "table": table, **host})
    return table


def a_request(
    *,
    flavor: dict[str, Any] | None = None,
    image: dict[str, Any] | None = None,
    hints: dict[str, list[str]] | None = None,
    group: dict[str, Any] | None = None,
    tried: list[tuple[str, str | None]] | None = None,
    **fields: Any,
) -> objects.RequestSpec:
    """A request for an m1.tiny with *flavor* changed; *image* holds image properties.

    *tried* lists the (host, node) pairs of earlier attempts.
    """
    spec = objects.RequestSpec(
        flavor=objects.Flavor(**{**FLAVOR, **(flavor or {})}),
        scheduler_hints=hints,
        instance_uuid=OWN_UUID,
        num_instances=1,
        **fields,
    )
    if image is not None:
        spec.image = objects.ImageMeta(properties=objects.ImageMetaProps(**image))
    if group is not None:
        spec.instance_group = objects.InstanceGroup(**{"members": [], "hosts": [], **group})
    if tried is not None:
        nodes = [objects.ComputeNode(host=h, hypervisor_hostname=n) for h, n in tried]
        retries = objects.ComputeNodeList(objects=nodes)
        spec.retry = objects.SchedulerRetries(num_attempts=len(tried), hosts=retries)
    return spec


def candidates(table: HostTable, now: float = NOW, down_seconds: float = 60.0) -> Candidates:
    """All hosts of *table*, in order, at the moment *now*."""
    return Candidates(Scope(table, now, down_seconds), table.order)


def names(hosts: Candidates) -> list[str]:
    """The host names, in order."""
    return [state.host for state in hosts.states()]


def verdict(each: HostFilter, state: HostState, request: objects.RequestSpec) -> list[str]:
    """The code of the reason for which *each* removes the one host; none if it passes."""
    hosts = Candidates.alone(state)
    found = FilterChain([each]).run(hosts, request)
    [count] = found.counts
    assert len(found.hosts) + sum(count.removed.values()) == 1
    return list(count.removed)


def contributions(
    weigher: HostWeigher, hosts: Candidates, request: objects.RequestSpec
) -> tuple[list[float], list[str]]:
    """What *weigher* adds to each of *hosts*, and their names in the order that follows."""
    totals, [part] = weigh([weigher], hosts, request, CURRENT)
    order = np.argsort(-totals, kind="stable")
    return part.weighted.tolist(), names(hosts.take(order))


def put_node(connection: Connection, host: str, node: str, values: Mapping[str, Any]) -> int:
    """Insert a row of ``compute_nodes`` or update the columns in *values*; its id."""
    named = {**values, "host": host, "hypervisor_hostname": node}
    return compute_nodes.upsert_many(connection, [named])[0]


def an_instance_row(uuid: str, host: str | None, updated_at: float = 0, **columns: Any) -> Any:
    """A row of ``instances`` as it is read; *updated_at* in seconds since the epoch."""
    epoch = datetime.datetime(1970, 1, 1)
    values = {
        "uuid": uuid,
        "host": host,
        "node": None,
        "vm_state": "active",
        "task_state": None,
        "deleted": 0,
        "instance_type_id": 7,
        "created_at": epoch,
        "updated_at": epoch + datetime.timedelta(seconds=updated_at),
    }
    return SimpleNamespace(**{**values, **columns})
