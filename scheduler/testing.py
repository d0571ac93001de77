"""Hosts, requests and decisions for the tests of filters, weighers and drivers of your own.

A host is, by default, ``h1``/``n1`` with 4 vCPUs, 4096 MB and 100 GB, all free, ratios
16.0, 1.5 and 1.0, in no aggregate, able to run x86_64 on KVM 2.5.0, enabled and just heard from.
Nothing in the service imports this module.
"""

import json
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_utils import uuidutils

from scheduler import conf as options
from scheduler import drivers, objects
from scheduler.engine.evaluation import FilterChain
from scheduler.explain.answer import to_dict
from scheduler.filters.base import BaseHostFilter
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.host_state import HostState
from scheduler.hosts.instances import TrackedInstance
from scheduler.hosts.table import HostTable
from scheduler.manager import SchedulerManager

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


def a_conf(**filter_scheduler: Any) -> cfg.ConfigOpts:
    """Every option at its default, except those of ``[filter_scheduler]`` given."""
    return options.detached({("filter_scheduler", n): v for n, v in filter_scheduler.items()})


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
    record = {"host": host, "topic": "compute", "disabled": False, "forced_down": False}
    table.set_service(host, {**record, **(service or {})}, last_seen)
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


def a_fleet(*hosts: dict[str, Any], table: HostTable | None = None) -> HostTable:
    """A table of hosts h1/n1, h2/n2, …, each with the columns given for it."""
    table = HostTable() if table is None else table
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


def verdict(each: BaseHostFilter, state: HostState, request: objects.RequestSpec) -> list[str]:
    """The code of the reason for which *each* removes the one host; none if it passes."""
    found = FilterChain([each]).run(Candidates.alone(state), request)
    [count] = found.counts
    return list(count.removed)


class _Fleet(HostManager):
    def refresh(self, arrived_at: float | None = None) -> None:
        """There is nothing to read."""


class Decider:
    """A scheduler that decides on *hosts*, each given as for ``a_fleet``: driver, engine, records.

    *filters* and *weighers* are classes, and the only ones that run; others are named by the
    options of ``[filter_scheduler]``.  What it places stays placed.
    """

    def __init__(
        self,
        *hosts: dict[str, Any],
        filters: Sequence[type] | None = None,
        weighers: Sequence[type] | None = None,
        driver: type | str = "filter_scheduler",
        **filter_scheduler: Any,
    ) -> None:
        given = dict(filter_scheduler)
        if filters is not None:
            given["available_filters"] = [_path(each) for each in filters]
            given["enabled_filters"] = [each.__name__ for each in filters]
        if weighers is not None:
            given["weight_classes"] = [_path(each) for each in weighers]
        conf = a_conf(**given)
        path = driver if isinstance(driver, str) else _path(driver)
        conf.set_override("driver", path, group="scheduler")
        reader: Any = None
        self.host_manager = _Fleet(conf, reader, clock=lambda: NOW)
        known = {"uuid": OWN_UUID, "cell_uuid": conf.scheduler.cell_uuid}
        a_fleet(*({**known, **each} for each in hosts), table=self.host_manager.table)
        self.manager = SchedulerManager(conf, drivers.load(conf, self.host_manager))

    def decide(
        self, request: objects.RequestSpec, count: int = 1, context: Any = None
    ) -> list[str]:
        """The names of the hosts for *count* servers; NoValidHost when not all fit."""
        context = context or oslo_context.RequestContext(overwrite=False)
        uuids = [uuidutils.generate_uuid() for _number in range(count)]
        chosen = self.manager.select_destinations(
            context, spec_obj=request, instance_uuids=uuids, return_objects=True
        )
        return [first.service_host for first, *_others in chosen]

    def explain(self) -> dict[str, Any]:
        """The latest decision, as in ``explain --json``; ``cause`` is its first line."""
        return to_dict(self.manager.recorder.records[-1])


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"
