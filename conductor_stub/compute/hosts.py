"""Many compute hosts in one process, and the rows that make them known."""

from __future__ import annotations

import datetime
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import mappings
from conductor_stub.compute.builds import Builds, BuildSettings
from conductor_stub.compute.clients import Announcer, Clients
from conductor_stub.compute.host_rows import HostRows
from conductor_stub.compute.moves import Moves
from conductor_stub.compute.node_report import NodeReport, Reserved
from conductor_stub.compute.profiles import HostPlan, merged_aggregates
from scheduler import errors, objects
from scheduler.daemon.periodic import SERVICE_VERSION
from scheduler.db import aggregates, compute_nodes, instances, services
from scheduler.db import rows as db_rows
from scheduler.db.database import Database
from scheduler.hosts.consumption import Fitting
from scheduler.rpc.context import get_admin_context

LOG = logging.getLogger(__name__)

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
    """Complete the plans' aggregates and their hosts; the aggregates that changed."""
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


class ComputeHosts:
    """The hosts of *plans*, to be driven by RPC servers and timers, or directly in a process.

    Builds and moves are found by the name of the host.

    *clock* gives naive UTC without fractions, *luck* decides which builds fail, *pause* waits
    for a number of seconds.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        database: Database,
        clients: Clients,
        plans: Sequence[HostPlan],
        settings: BuildSettings,
        *,
        clock: Callable[[], datetime.datetime] = db_rows.utcnow,
        luck: random.Random | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._database = database
        self._scheduler = clients.scheduler
        self._plans = list(plans)
        self._clock = clock
        self._enable_new_services = bool(conf.enable_new_services)
        self._announcer = Announcer(clients.scheduler, conf.filter_scheduler.track_instance_changes)
        self._service_ids: list[int] = []
        reserved = Reserved.from_conf(conf)
        fitting = Fitting.from_conf(conf)
        reports = [NodeReport(plan, reserved, conf.my_ip, clock, fitting) for plan in plans]
        self._rows = {each.host: HostRows(database, each, clock) for each in reports}
        luck = luck or random.Random()
        self.builds = {
            host: Builds(each, clients, self._announcer, settings, luck, pause)
            for host, each in self._rows.items()
        }
        self.moves = {
            host: Moves(each, clients, self._announcer) for host, each in self._rows.items()
        }

    @property
    def names(self) -> list[str]:
        """The hosts' names, in the order of their plans."""
        return list(self._rows)

    def register(self) -> None:
        """Make or renew the rows of all hosts, and tell the schedulers about new aggregates.

        Hosts that exist keep their instances: usage is computed from those.  Builds that an
        earlier process left unfinished are given up.
        """
        try:
            changed = self._database.write_retrying(self._register)
        except errors.AlreadyExists as error:
            LOG.debug("Another process registered something of ours just now: %s", error)
            changed = self._database.write_retrying(self._register)
        if changed:
            self._scheduler.update_aggregates(get_admin_context(), changed)
        for rows in self._rows.values():
            for uuid in rows.interrupted():
                LOG.warning("The build of instance %s was cut off with %s", uuid, rows.host)
                rows.fail(uuid, errors.NovaException(f"{rows.host} ended during the build"))
        LOG.info("Registered %d compute hosts", len(self._rows))

    def _register(self, conn: Connection) -> list[objects.Aggregate]:
        self._service_ids = register_services(conn, self.names, self._enable_new_services)
        register_nodes(conn, list(self._rows.values()))
        return register_aggregates(conn, self._plans)

    def announce(self) -> None:
        """Tell the schedulers the full list of every host's instances, as a starting compute."""
        context = get_admin_context()
        for host, rows in self._rows.items():
            self._announcer.present(context, host, rows.present())

    def heartbeat(self) -> None:
        """One sign of life of all hosts."""
        living = self._database.write_retrying(
            lambda conn: services.heartbeat_many(conn, self._service_ids, self._clock())
        )
        if living < len(self._service_ids):
            LOG.error(
                "The services table records of %d compute hosts are gone. Restart this service to "
                "recreate them.",
                len(self._service_ids) - living,
            )

    def audit(self) -> None:
        """Report every host's resources anew, as the periodic task of a compute does."""
        for rows in self._rows.values():
            rows.audit()

    def sync_instances(self) -> None:
        """Tell the schedulers the uuids of every host's instances."""
        context = get_admin_context()
        for host, rows in self._rows.items():
            self._announcer.list_of(context, host, rows.uuids())

    def instance(self, uuid: str) -> objects.Instance:
        """The instance as it is in the database; raises InstanceNotFound."""
        with self._database.read() as conn:
            return instances.get(conn, uuid)
