"""``host`` and ``service``: the compute hosts, the processes with a row, and what they are at."""

import collections
import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.cli.command import (
    Argument,
    Base,
    List,
    Names,
    Show,
    Text,
    Usage,
    argument,
    on_tables,
    positive,
)
from scheduler.db import aggregates, compute_nodes, instances, services
from scheduler.semantics import Ratios

HOST_COLUMNS = (
    *("ID", "Host", "Node", "Zone", "Status", "State"),
    *("vCPUs", "RAM MB", "Disk GB", "Instances"),
)
SUMMARY_COLUMNS = (
    *("Zone", "Hosts", "Down", "Disabled"),
    *("vCPUs", "RAM MB", "Disk GB", "Instances"),
)
#: Keys of what is used, and how much there is.
SIZES = ("vcpus", "ram_mb", "disk_gb")
#: Columns of the node's row that ``host show`` takes as they are.
CAPACITY = (
    *("hypervisor_type", "hypervisor_version", "vcpus", "vcpus_used"),
    *("memory_mb", "memory_mb_used", "free_ram_mb", "local_gb", "local_gb_used", "free_disk_gb"),
    *("disk_available_least", "running_vms", "current_workload"),
)


def _aggregates(command: Base) -> list[objects.Aggregate]:
    with command.databases.api.read() as connection:
        return aggregates.list_all(connection)


def _zones(found: Iterable[objects.Aggregate], conf: cfg.ConfigOpts) -> Mapping[str, list[str]]:
    """The zones of each host, by its aggregates (reference page scheduling, section 11)."""
    zones: dict[str, list[str]] = {}
    for aggregate in found:
        if zone := aggregate.availability_zone:
            for host in aggregate.hosts:
                zones.setdefault(host, []).append(zone)
    return collections.defaultdict(lambda: [conf.default_availability_zone], zones)


def zones_by_host(command: Base) -> Mapping[str, list[str]]:
    return _zones(_aggregates(command), command.conf)


def status(service: objects.Service | None) -> str:
    """``enabled`` or ``disabled``; a host without a service counts as disabled."""
    return "disabled" if service is None or service.disabled else "enabled"


def state(service: objects.Service | None, conf: cfg.ConfigOpts) -> str:
    """``up`` or ``down``; a service that is not there is down."""
    is_up = service is not None and services.is_up(service, conf.service_down_time)
    return "up" if is_up else "down"


@on_tables(
    List,
    argument("--zone", help="only hosts of this availability zone"),
    argument("--aggregate", metavar="AGGREGATE", help="only hosts of this aggregate, name or id"),
    argument("--down", action="store_true", help="only hosts that are down"),
    argument("--limit", type=positive, metavar="N", help="at most so many hosts"),
    argument("--summary", action="store_true", help="one line for each zone, and no hosts"),
    nothing="There are no such compute hosts.",
)
def host_list(command: Any, args: Any) -> list[dict[str, Any]]:
    """List the compute hosts with their zone, state and usage."""
    groups, has_cells = _aggregates(command), command.databases.has_cells
    zones = _zones(groups, command.conf)
    members = _members(groups, args.aggregate)
    found: list[dict[str, Any]] = []
    for cell, database in command.cells.items():
        with database.read() as connection:
            nodes = compute_nodes.list_all(connection)
            known = services.list_all(connection, services.COMPUTE_BINARY)
        by_host = {each.host: each for each in known}
        for node in nodes:
            service, its_zones = by_host.get(node.host), zones[node.host]
            zone, its_state = args.zone or its_zones[0], state(service, command.conf)
            is_wanted = zone in its_zones and not (args.down and its_state == "up")
            if is_wanted and (members is None or node.host in members):
                host = {"id": node.id, "host": node.host, "node": node.hypervisor_hostname}
                host |= {"zone": zone, "status": status(service), "state": its_state, "cell": cell}
                found.append({**host, **_usage(node), "instances": node.running_vms or 0})
    if args.summary:
        if args.limit:
            command.parser.error("--summary has no hosts to --limit")
        command.columns = SUMMARY_COLUMNS
        found = [_summary(zone, found) for zone in sorted({each["zone"] for each in found})]
    else:
        command.columns = (*HOST_COLUMNS, "Cell") if has_cells else HOST_COLUMNS
    if len(found) > (args.limit or len(found)):
        command.tell(f"note: {args.limit} of {len(found)} hosts")
    return [{**each, **{name: Usage(each[name]) for name in SIZES}} for each in found[: args.limit]]


def _usage(node: Any) -> dict[str, tuple[int, int]]:
    return {
        "vcpus": (node.vcpus_used, node.vcpus),
        "ram_mb": (node.memory_mb_used, node.memory_mb),
        "disk_gb": (node.local_gb_used, node.local_gb),
    }


def _summary(zone: str, hosts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    there = [each for each in hosts if each["zone"] == zone]
    return {
        "zone": zone,
        "hosts": len(there),
        "down": sum(each["state"] == "down" for each in there),
        "disabled": sum(each["status"] == "disabled" for each in there),
        **{name: tuple(_sum(each[name][n] for each in there) for n in (0, 1)) for name in SIZES},
        "instances": _sum(each["instances"] for each in there),
    }


def _sum(numbers: Iterable[Any]) -> int:
    """The sum, in which NULL counts as nothing, and so does a text, which SQLite keeps."""
    return sum(each for each in numbers if isinstance(each, int))


def _members(groups: Iterable[objects.Aggregate], wanted: str | None) -> set[str] | None:
    """The hosts of the aggregate of that name or id; None if none is wanted."""
    if wanted is None:
        return None
    found = [each for each in groups if wanted in (each.name, str(each.id))]
    if not found:
        raise errors.AggregateNotFound(aggregate_id=wanted)
    return set(found[0].hosts)


@on_tables(
    Show,
    argument("host", metavar="HOST"),
    argument("--node", help="which node, if the host has several"),
)
def host_show(command: Base, args: Any) -> dict[str, Any]:
    """Show everything about one compute host."""
    host, conf, groups = args.host, command.conf, _aggregates(command)
    database = command.database_with(lambda conn: compute_nodes.list_all(conn, host))
    with database.read() as connection:
        node = _choose(connection, host, args.node)
        service = services.find(connection, host, services.COMPUTE_BINARY)
        found = instances.list_all(connection, host=host, parts=False)
    ratios = Ratios.from_conf(conf)
    ratio_by_name = (("cpu", ratios.cpu), ("ram", ratios.ram), ("disk", ratios.disk))
    return {
        "id": node.id,
        "uuid": node.uuid,
        "host": node.host,
        "node": node.hypervisor_hostname,
        "host_ip": node.host_ip,
        "zone": _zones(groups, conf)[host][0],
        **_service_fields(service, conf),
        **{name: getattr(node, name) for name in CAPACITY},
        **{
            f"{name}_allocation_ratio": getattr(node, f"{name}_allocation_ratio") or ratio
            for name, ratio in ratio_by_name
        },
        "aggregates": Names([each.name for each in groups if host in each.hosts]),
        "instances": Names(
            [each.uuid for each in found if each.node in (None, node.hypervisor_hostname)]
        ),
        "updated_at": _moment(node.updated_at or node.created_at),
    }


def _choose(connection: Connection, host: str, wanted: str | None) -> Any:
    nodes = compute_nodes.list_all(connection, host, wanted)
    if not nodes:
        raise errors.ComputeHostNotFound(host=host if wanted is None else f"{host}, node {wanted},")
    if len(nodes) > 1:
        names = ", ".join(str(node.hypervisor_hostname) for node in nodes)
        raise errors.InvalidRequest(
            field="--node", reason=f"host {host} has {len(nodes)} nodes, name one: {names}"
        )
    return nodes[0]


def _service_fields(service: objects.Service | None, conf: cfg.ConfigOpts) -> dict[str, Any]:
    shown = {"status": status(service), "state": state(service, conf)}
    if service is None:
        return {**shown, "disabled_reason": "no service"}
    return {
        **shown,
        "disabled_reason": service.disabled_reason,
        "forced_down": bool(service.forced_down),
        "last_seen_up": _moment(service.last_seen_up),
    }


def _moment(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment.replace(tzinfo=None).isoformat()


@on_tables(
    List,
    argument("--host", help="only the services of this host"),
    argument("--service", metavar="BINARY", help="only this binary"),
    columns=(
        *("ID", "Binary", "Host", "Zone", "Status", "State"),
        *("Updated At", "Disabled Reason", "Forced Down"),
    ),
    nothing="There is no such service.",
)
def service_list(command: Base, args: Any) -> list[Sequence[Any]]:
    """List the services."""
    zones = zones_by_host(command)
    found = command.read_cells(lambda conn: services.list_all(conn, args.service))
    return [
        (
            *(each.id, each.binary, each.host),
            ",".join(dict.fromkeys(zones[each.host]))
            if each.topic == "compute"
            else command.conf.internal_service_availability_zone,
            *(status(each), state(each, command.conf)),
            _moment(each.last_seen_up or each.updated_at or each.created_at),
            *(each.disabled_reason, bool(each.forced_down)),
        )
        for each in found
        if args.host in (None, each.host)
    ]


def _switch(name: str, group: str, text: str) -> Argument:
    return argument(name, group=group, is_choice=True, action="store_true", help=text)


@on_tables(
    Text,
    _switch("--enable", "switch", "let it be used"),
    _switch("--disable", "switch", "place no server on its host"),
    argument("--disable-reason", metavar="REASON", help="why it is disabled"),
    _switch("--up", "force", "believe its heartbeats again"),
    _switch("--down", "force", "down, whatever its heartbeats say"),
    argument("host", metavar="HOST"),
    argument("binary", metavar="BINARY", help="for example nova-compute"),
    words="{binary} on {host} is {status} and {state}.",
)
def service_set(command: Base, args: Any) -> dict[str, Any]:
    """Enable or disable a service, or declare it down."""
    if args.disable_reason is not None and not args.disable:
        command.parser.error("--disable-reason needs --disable")
    if not (args.enable or args.disable or args.up or args.down):
        command.parser.error("one of --enable, --disable, --up and --down is needed")
    name, values = (args.host, args.binary), dict[str, Any]()
    if args.enable or args.disable:
        values = {"disabled": args.disable, "disabled_reason": args.disable_reason}
    if args.up or args.down:
        values["forced_down"] = args.down
    database = command.database_with(lambda conn: services.find(conn, *name))
    database.write_retrying(lambda conn: services.change(conn, *name, **values))
    with database.read() as connection:
        found = services.get(connection, *name)
    shown = {"status": status(found), "state": state(found, command.conf)}
    return {"host": args.host, "binary": args.binary, **shown}
