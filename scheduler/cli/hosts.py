"""``host``: the compute hosts, what they have and what of it is used."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.cli import cells, command, status
from scheduler.db import aggregates, compute_nodes, instances, services
from scheduler.db.database import Database
from scheduler.hosts.rows import Ratios

COLUMNS = (
    "ID",
    "Host",
    "Node",
    "Zone",
    "Status",
    "State",
    "vCPUs",
    "RAM MB",
    "Disk GB",
    "Instances",
)


class List(command.List):
    """List the compute hosts with their zone, state and usage."""

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - cliff passes it
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Read the nodes, their services and their zones, in all cells."""
        with self.databases.api.read() as connection:
            zones = status.Zones(aggregates.list_all(connection), self.conf)
        rows: list[Sequence[Any]] = []
        for name, database in self.cells.items():
            with database.read() as connection:
                nodes = compute_nodes.list_all(connection)
                found = services.list_all(connection, services.COMPUTE_BINARY)
            by_host = {each.host: each for each in found}
            rows += [(*self._row(node, by_host.get(node.host), zones), name) for node in nodes]
        if self.databases.has_cells:
            return (*COLUMNS, "Cell"), rows
        return COLUMNS, [row[:-1] for row in rows]

    def _row(
        self, node: objects.ComputeNode, service: objects.Service | None, zones: status.Zones
    ) -> Sequence[Any]:
        return (
            node.id,
            node.host,
            node.hypervisor_hostname,
            zones.of_host(node.host),
            status.status(service),
            status.state(service, self.conf),
            cells.Usage((node.vcpus_used, node.vcpus)),
            cells.Usage((node.memory_mb_used, node.memory_mb)),
            cells.Usage((node.local_gb_used, node.local_gb)),
            node.running_vms or 0,
        )


class Show(command.Show):
    """Show everything about one compute host."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The host, and one of its nodes where it has several."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="HOST")
        parser.add_argument("--node", help="which node, if the host has several")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Read the node with its service, aggregates and instances."""
        host = parsed_args.host
        with self.databases.api.read() as connection:
            all_aggregates = aggregates.list_all(connection)
        with self._database_of(host).read() as connection:
            node = _choose(compute_nodes.list_all(connection, host), host, parsed_args.node)
            service = _service(connection, host)
            uuids = [
                each.uuid
                for each in instances.on_host(connection, host)
                if each.node in (None, node.hypervisor_hostname)
            ]
        return self.dict2columns(
            {
                "id": node.id,
                "uuid": node.uuid,
                "host": node.host,
                "node": node.hypervisor_hostname,
                "host_ip": None if node.host_ip is None else str(node.host_ip),
                "zone": status.Zones(all_aggregates, self.conf).of_host(host),
                **_service_fields(service, status.state(service, self.conf)),
                **_capacity(node),
                **_ratios(node, Ratios.from_conf(self.conf)),
                "aggregates": cells.Names(
                    [each.name for each in all_aggregates if host in each.hosts]
                ),
                "instances": cells.Names(uuids),
                "updated_at": _moment(node.updated_at or node.created_at),
            }
        )

    def _database_of(self, host: str) -> Database:
        """The database that has the host's nodes; the main one for a host that none has."""
        for database in self.cells.values():
            with database.read() as connection:
                if compute_nodes.list_all(connection, host):
                    return database
        return self.database


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


def _service(connection: Connection, host: str) -> objects.Service | None:
    try:
        return services.get(connection, host, services.COMPUTE_BINARY)
    except errors.ServiceNotFound:
        return None


def _service_fields(service: objects.Service | None, state: str) -> dict[str, Any]:
    if service is None:
        return {"status": status.status(None), "state": state, "disabled_reason": "no service"}
    return {
        "status": status.status(service),
        "state": state,
        "disabled_reason": service.disabled_reason,
        "forced_down": bool(service.forced_down),
        "last_seen_up": _moment(service.last_seen_up),
    }


def _capacity(node: objects.ComputeNode) -> dict[str, Any]:
    return {
        "hypervisor_type": node.hypervisor_type,
        "hypervisor_version": node.hypervisor_version,
        "vcpus": node.vcpus,
        "vcpus_used": node.vcpus_used,
        "memory_mb": node.memory_mb,
        "memory_mb_used": node.memory_mb_used,
        "free_ram_mb": node.free_ram_mb,
        "local_gb": node.local_gb,
        "local_gb_used": node.local_gb_used,
        "free_disk_gb": node.free_disk_gb,
        "disk_available_least": node.disk_available_least,
        "running_vms": node.running_vms,
        "current_workload": node.current_workload,
    }


def _ratios(node: objects.ComputeNode, ratios: Ratios) -> dict[str, float]:
    """The ratios that decisions use: the row's own, else the configured ones."""
    return {
        f"{name}_allocation_ratio": getattr(node, f"{name}_allocation_ratio") or configured
        for name, configured in (("cpu", ratios.cpu), ("ram", ratios.ram), ("disk", ratios.disk))
    }


def _moment(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment.replace(tzinfo=None).isoformat()
