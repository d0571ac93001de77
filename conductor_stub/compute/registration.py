"""The rows that make a fleet known: services, compute nodes, aggregates, host mappings.

Reference page database, sections 3.1, 3.2, 4 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from conductor_stub.compute.host_rows import HostRows
from conductor_stub.compute.profiles import HostPlan, merged_aggregates
from scheduler import objects
from scheduler.db import aggregates, compute_nodes, mappings, services
from scheduler.heartbeat import SERVICE_VERSION

TOPIC: Final = "compute"
BINARY: Final = services.COMPUTE_BINARY
DISABLED_REASON: Final = "New compute service disabled due to config option."


def register_services(
    conn: Connection, hosts: Sequence[str], enable_new_services: bool
) -> list[int]:
    """The ids of the hosts' services, which are inserted where they are missing."""
    known = {service.host for service in services.list_all(conn, BINARY)}
    ids = services.create_many(conn, hosts, BINARY, TOPIC, SERVICE_VERSION)
    if not enable_new_services:
        for host in ids.keys() - known:
            services.set_disabled(conn, host, BINARY, True, DISABLED_REASON)
    return list(ids.values())


def register_nodes(conn: Connection, hosts: Sequence[HostRows]) -> None:
    """Insert or renew the compute nodes, with usage computed from the instances they have."""
    compute_nodes.upsert_many(conn, [{**each.new_row(conn), "mapped": 1} for each in hosts])
    mappings.create_host_mappings(conn, [each.host for each in hosts])


def register_aggregates(conn: Connection, plans: Sequence[HostPlan]) -> list[objects.Aggregate]:
    """Make the plans' aggregates and put the hosts into them; gives those that changed.

    Whatever else an operator put into an aggregate stays.
    """
    changed = []
    known = {aggregate.name: aggregate for aggregate in aggregates.list_all(conn)}
    for name, metadata in merged_aggregates(plans).items():
        hosts = [plan.name for plan in plans if name in plan.aggregates]
        if name not in known:
            changed.append(aggregates.create(conn, name, metadata, hosts))
        elif _complete(conn, known[name], metadata, hosts):
            changed.append(aggregates.get(conn, known[name].id))
    return changed


def _complete(
    conn: Connection, aggregate: objects.Aggregate, metadata: dict[str, str], hosts: Sequence[str]
) -> bool:
    """Add what the aggregate lacks; whether that was anything."""
    present = aggregate.metadata or {}
    news = {key: value for key, value in metadata.items() if present.get(key) != value}
    missing = [host for host in hosts if host not in (aggregate.hosts or [])]
    if news:
        aggregates.set_metadata(conn, aggregate.id, news)
    for host in missing:
        aggregates.add_host(conn, aggregate.id, host)
    return bool(news or missing)
