"""Many compute hosts in one process, and the rows that make them known."""

import datetime
import random
import time
from collections.abc import Callable, Sequence

from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub.compute.host import BuildSettings, Clients, Host
from conductor_stub.compute.host_rows import BUILDING, HostRows
from conductor_stub.compute.node_report import NodeReport
from conductor_stub.compute.profiles import HostPlan
from conductor_stub.compute.registration import (
    DISABLED,
    put_nodes,
    put_services,
    register_aggregates,
)
from scheduler import errors, objects
from scheduler.daemon.periodic import SERVICE_VERSION
from scheduler.db import rows as db_rows
from scheduler.db import services
from scheduler.db.database import Database
from scheduler.rpc.context import get_admin_context

LOG = logging.getLogger(__name__)


class ComputeHosts:
    """The hosts of *plans*, to be driven by RPC servers and timers, or directly in a process.

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
        self._clients = clients
        self._plans = plans
        self._clock = clock
        self._if_new = {} if conf.enable_new_services else DISABLED
        self._service_ids: list[int] = []
        luck = luck or random.Random()
        rows = [HostRows(database, NodeReport(plan, conf, clock)) for plan in plans]
        #: By name, in the order of their plans.
        self.hosts = {each.host: Host(each, clients, settings, luck, pause) for each in rows}

    def register(self) -> None:
        """Make or renew the rows of all hosts, and notify the schedulers of new aggregates.

        Hosts that exist keep their instances: usage is computed from those.  Builds that an
        earlier process left unfinished are given up.
        """
        try:
            changed = self._database.write_retrying(self._register)
        except errors.AlreadyExists as error:
            LOG.debug("Another process registered something of ours just now: %s", error)
            changed = self._database.write_retrying(self._register)
        if changed:
            context = get_admin_context()
            self._clients.scheduler.fanout(context, "update_aggregates", aggregates=changed)
        for name, host in self.hosts.items():
            for each in host.rows.present():
                if each.vm_state == BUILDING:
                    LOG.warning("The build of instance %s was cut off with %s", each.uuid, name)
                    cause = errors.NovaException(f"{name} ended during the build")
                    host.rows.give_up(each.uuid, cause)
        LOG.info("Registered %d compute hosts", len(self.hosts))

    def _register(self, conn: Connection) -> list[objects.Aggregate]:
        ids = put_services(conn, list(self.hosts), SERVICE_VERSION, **self._if_new)
        self._service_ids = list(ids.values())
        new = [host.rows.new_row(conn) for host in self.hosts.values()]
        put_nodes(conn, new)  # renewed where they are known
        return register_aggregates(conn, self._plans)

    def announce(self) -> None:
        """Send the schedulers the full list of every host's instances, as a starting compute."""
        context = get_admin_context()
        for name, host in self.hosts.items():
            self._clients.notify_present(context, name, host.rows.present())

    def heartbeat(self) -> None:
        """One sign of life of all hosts."""
        living = self._database.write_retrying(
            lambda conn: services.heartbeat(conn, self._service_ids, self._clock())
        )
        if living < len(self._service_ids):
            LOG.error(
                "The services table records of %d compute hosts are gone. Restart this service to "
                "recreate them.",
                len(self._service_ids) - living,
            )

    def audit(self) -> None:
        """Report every host's resources anew, as the periodic task of a compute does."""
        for host in self.hosts.values():
            host.rows.audit()

    def sync_instances(self) -> None:
        """Send the schedulers the uuids of every host's instances."""
        context = get_admin_context()
        for name, host in self.hosts.items():
            uuids = [each.uuid for each in host.rows.present()]
            self._clients.notify(context, "sync_instance_info", name, instance_uuids=uuids)
