"""``host`` and ``service``: the compute hosts, the processes with a row, and what they are at."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg
from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.cli import command
from scheduler.cli.command import Names, Shown, Table, Usage, argument
from scheduler.db import aggregates, compute_nodes, instances, rows, services
from scheduler.hosts.rows import Ratios

HOST_COLUMNS = (
    *("ID", "Host", "Node", "Zone", "Status", "State"),
    *("vCPUs", "RAM MB", "Disk GB", "Instances"),
)
SERVICE_COLUMNS = (
    *("ID", "Binary", "Host", "Zone", "Status", "State"),
    *("Updated At", "Disabled Reason", "Forced Down"),
)
#: Columns of the node's row that ``host show`` takes as they are.
CAPACITY = (
    *("hypervisor_type", "hypervisor_version", "vcpus", "vcpus_used"),
    *("memory_mb", "memory_mb_used", "free_ram_mb", "local_gb", "local_gb_used", "free_disk_gb"),
    *("disk_available_least", "running_vms", "current_workload"),
)


class Zones:
    """Availability zones by the aggregates (reference page scheduling, section 11)."""

    def __init__(self, found: Iterable[objects.Aggregate], conf: cfg.ConfigOpts) -> None:
        self._default = conf.default_availability_zone
        self._internal = conf.internal_service_availability_zone
        self._zones: dict[str, list[str]] = {}
        for aggregate in found:
            if zone := aggregate.availability_zone:
                for host in aggregate.hosts:
                    self._zones.setdefault(host, []).append(zone)

    def of_host(self, host: str) -> str:
        """The zone of a compute host: that of its first aggregate that has one."""
        return self._zones.get(host, [self._default])[0]

    def of_service(self, service: objects.Service) -> str:
        """The zones shown for a service: all of its host, if it is a compute service."""
        if service.topic != "compute":
            return self._internal
        return ",".join(dict.fromkeys(self._zones.get(service.host, [self._default])))


def status(service: objects.Service | None) -> str:
    """``enabled`` or ``disabled``; a host without a service counts as disabled."""
    return "disabled" if service is None or service.disabled else "enabled"


def state(service: objects.Service | None, conf: cfg.ConfigOpts) -> str:
    """``up`` or ``down`` by the last heartbeat (reference page scheduling, section 10).

    Without a heartbeat yet, the creation counts; a service forced down is down.
    """
    if service is None or service.forced_down:
        return "down"
    seen = service.last_seen_up or service.created_at
    if seen is None:
        return "down"
    silence = abs(rows.utcnow() - seen.replace(tzinfo=None))
    return "up" if silence <= datetime.timedelta(seconds=conf.service_down_time) else "down"


class HostList(command.List):
    """List the compute hosts with their zone, state and usage."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:  # noqa: ARG002
        """Read the nodes, their services and their zones, in all cells."""
        with self.databases.api.read() as connection:
            zones = Zones(aggregates.list_all(connection), self.conf)
        found: list[Sequence[Any]] = []
        for name, database in self.cells.items():
            with database.read() as connection:
                nodes = compute_nodes.list_all(connection)
                known = services.list_all(connection, services.COMPUTE_BINARY)
            by_host = {each.host: each for each in known}
            found += [(*self._row(node, by_host.get(node.host), zones), name) for node in nodes]
        if self.databases.has_cells:
            return (*HOST_COLUMNS, "Cell"), found
        return HOST_COLUMNS, [row[:-1] for row in found]

    def _row(
        self, node: objects.ComputeNode, service: objects.Service | None, zones: Zones
    ) -> Sequence[Any]:
        return (
            *(node.id, node.host, node.hypervisor_hostname, zones.of_host(node.host)),
            *(status(service), state(service, self.conf)),
            Usage((node.vcpus_used, node.vcpus)),
            Usage((node.memory_mb_used, node.memory_mb)),
            Usage((node.local_gb_used, node.local_gb)),
            node.running_vms or 0,
        )


class HostShow(command.Show):
    """Show everything about one compute host."""

    arguments = (
        argument("host", metavar="HOST"),
        argument("--node", help="which node, if the host has several"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Read the node with its service, aggregates and instances."""
        host = parsed_args.host
        with self.databases.api.read() as connection:
            groups = aggregates.list_all(connection)
        database = self.database_with(lambda conn: compute_nodes.list_all(conn, host))
        with database.read() as connection:
            node = _choose(compute_nodes.list_all(connection, host), host, parsed_args.node)
            service = _service(connection, host, services.COMPUTE_BINARY)
            found = instances.on_host(connection, host)
        ratios = Ratios.from_conf(self.conf)
        ratio_by_name = (("cpu", ratios.cpu), ("ram", ratios.ram), ("disk", ratios.disk))
        uuids = [each.uuid for each in found if each.node in (None, node.hypervisor_hostname)]
        fields = {
            "id": node.id,
            "uuid": node.uuid,
            "host": node.host,
            "node": node.hypervisor_hostname,
            "host_ip": None if node.host_ip is None else str(node.host_ip),
            "zone": Zones(groups, self.conf).of_host(host),
            **_service_fields(service, state(service, self.conf)),
            **{name: getattr(node, name) for name in CAPACITY},
            **{
                f"{name}_allocation_ratio": getattr(node, f"{name}_allocation_ratio") or ratio
                for name, ratio in ratio_by_name
            },
            "aggregates": Names([each.name for each in groups if host in each.hosts]),
            "instances": Names(uuids),
            "updated_at": _moment(node.updated_at or node.created_at),
        }
        return self.dict2columns(fields)


def _choose(
    nodes: Sequence[objects.ComputeNode], host: str, wanted: str | None
) -> objects.ComputeNode:
    if wanted is not None:
        nodes = [node for node in nodes if node.hypervisor_hostname == wanted]
    if not nodes:
        raise errors.ComputeHostNotFound(host=host if wanted is None else f"{host}, node {wanted},")
    if len(nodes) > 1:
        names = ", ".join(node.hypervisor_hostname for node in nodes)
        raise errors.InvalidRequest(
            field="--node", reason=f"host {host} has {len(nodes)} nodes, name one: {names}"
        )
    return nodes[0]


def _service(connection: Connection, host: str, binary: str) -> objects.Service | None:
    try:
        return services.get(connection, host, binary)
    except errors.ServiceNotFound:
        return None


def _service_fields(service: objects.Service | None, state: str) -> dict[str, Any]:
    if service is None:
        return {"status": status(None), "state": state, "disabled_reason": "no service"}
    return {
        "status": status(service),
        "state": state,
        "disabled_reason": service.disabled_reason,
        "forced_down": bool(service.forced_down),
        "last_seen_up": _moment(service.last_seen_up),
    }


def _moment(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment.replace(tzinfo=None).isoformat()


class ServiceList(command.List):
    """List the services."""

    arguments = (
        argument("--host", help="only the services of this host"),
        argument("--service", metavar="BINARY", help="only this binary"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read the services, in all cells, and their zones."""
        with self.databases.api.read() as connection:
            zones = Zones(aggregates.list_all(connection), self.conf)
        found = self.read_cells(lambda conn: services.list_all(conn, parsed_args.service))
        wanted = (each for each in found if parsed_args.host in (None, each.host))
        return SERVICE_COLUMNS, [self._row(each, zones) for each in wanted]

    def _row(self, service: objects.Service, zones: Zones) -> Sequence[Any]:
        return (
            *(service.id, service.binary, service.host, zones.of_service(service)),
            *(status(service), state(service, self.conf)),
            _moment(service.last_seen_up or service.updated_at or service.created_at),
            *(service.disabled_reason, bool(service.forced_down)),
        )


class ServiceSet(command.Base):
    """Enable or disable a service, or declare it down."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """As ``openstack compute service set``."""
        parser = super().get_parser(prog_name)
        switch = parser.add_mutually_exclusive_group()
        switch.add_argument("--enable", action="store_true", help="let it be used")
        switch.add_argument("--disable", action="store_true", help="place no server on its host")
        parser.add_argument("--disable-reason", metavar="REASON", help="why it is disabled")
        force = parser.add_mutually_exclusive_group()
        force.add_argument("--up", action="store_true", help="believe its heartbeats again")
        force.add_argument("--down", action="store_true", help="down, whatever its heartbeats say")
        parser.add_argument("host", metavar="HOST")
        parser.add_argument("binary", metavar="BINARY", help="for example nova-compute")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Make the changes, all or none."""
        args = parsed_args
        if args.disable_reason is not None and not args.disable:
            self.parser.error("--disable-reason needs --disable")
        if not (args.enable or args.disable or args.up or args.down):
            self.parser.error("one of --enable, --disable, --up and --down is needed")
        name = (args.host, args.binary)

        def change(connection: Connection) -> None:
            if args.enable or args.disable:
                services.set_disabled(connection, *name, args.disable, args.disable_reason)
            if args.up or args.down:
                services.set_forced_down(connection, *name, args.down)

        self.database_with(lambda conn: _service(conn, *name)).write_retrying(change)
