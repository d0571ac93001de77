"""``claims``: what schedulers have promised, and whether it agrees with what there is."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from scheduler import errors, exit_codes
from scheduler.claims import audit, loading
from scheduler.cli import command
from scheduler.cli.command import Table, argument
from scheduler.db import claims, compute_nodes, instances, migration, rows
from scheduler.db.database import Database
from scheduler.hosts.consumption import Fitting
from scheduler.hosts.rows import Ratios

COLUMNS = (
    *("Consumer", "Host", "Node", "vCPUs", "Memory MB"),
    *("Disk GB", "Request", "Created", "Expires", "Closed"),
)
DIFFERENCES = ("Difference", "Host", "Node", "Consumer", "What")


class _Claims(command.Base):
    """A command on the database of the claims."""

    needs_tables: ClassVar[bool] = False

    def claims_database(self) -> Database:
        """The one of ``[claims]``; raises an error unless it has the tables.

        Also where claims are in Placement, which has commands of its own.
        """
        if self.conf.scheduler.claims == loading.PLACEMENT:
            raise errors.ConfigurationError(
                option=loading.OPTION,
                reason="it is placement: the claims are allocations there; `openstack resource "
                "provider allocation show` and `nova-manage placement audit` look at them",
            )
        database = loading.claims_database(self.conf, self.database)
        migration.check_ready(database, needed=("claims", "claim_hosts"))
        return database


class List(_Claims, command.List):
    """List the claims that are open."""

    arguments = (
        argument("--host", help="only claims on this host"),
        argument("--all", action="store_true", help="also those closed a while ago"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read the claims."""
        with self.claims_database().read() as connection:
            found = claims.list_all(connection, host=parsed_args.host, with_closed=parsed_args.all)
        return COLUMNS, [_row(each) for each in found]


class Release(_Claims):
    """Close claims, so that what they promise is free again at once."""

    arguments = (
        argument("consumers", metavar="CONSUMER", nargs="*", help="an instance's uuid"),
        argument("--host", help="all open claims on this host"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Close them; what is not there is an error, and then nothing is closed."""
        if bool(parsed_args.consumers) == bool(parsed_args.host):
            raise errors.InvalidRequest(field="CONSUMER", reason="give uuids, or else --host")
        database = self.claims_database()
        with database.read() as connection:
            found = claims.list_all(connection, host=parsed_args.host)
        wanted = set(parsed_args.consumers)
        missing = sorted(wanted - {each.consumer_uuid for each in found})
        if missing:
            reason = f"no open claim of {', '.join(missing)}"
            raise errors.InvalidRequest(field="CONSUMER", reason=reason)
        ids = [each.id for each in found if not wanted or each.consumer_uuid in wanted]
        closed = database.write_retrying(lambda conn: claims.close(conn, ids, rows.utcnow()))
        self.app.stdout.write(f"{closed} claim(s) closed\n")


class Audit(_Claims, command.List):
    """Compare claims, instances and compute nodes; any difference ends with status 1."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Name every difference."""
        with self.claims_database().read() as connection:
            found = claims.list_all(connection)
        uuids = [each.consumer_uuid for each in found]
        built: dict[str, Any] = {}
        nodes: list[Any] = []
        counts: dict[audit.Key, int] = {}
        for database in self.cells.values():
            with database.read() as connection:
                built.update(instances.rows_by_uuid(connection, uuids))
                counts.update(instances.counts_by_node(connection))
                nodes += compute_nodes.living_rows(connection)
        fleet = audit.Fleet(built, counts, nodes)
        ratios, fitting = Ratios.from_conf(self.conf), Fitting.from_conf(self.conf)
        different = audit.differences(found, fleet, ratios, fitting, time.time())
        if different:
            self.status = exit_codes.FAILURE
        elif parsed_args.formatter == "table":
            self.app.stderr.write(f"{len(found)} open claim(s), and everything agrees\n")
        return DIFFERENCES, [
            (each.kind, each.host, each.node, each.consumer_uuid, each.what) for each in different
        ]


def _row(claim: Any) -> Sequence[Any]:
    return (
        *(claim.consumer_uuid, claim.host, claim.node, claim.vcpus, claim.memory_mb),
        *(claim.disk_gb, claim.request_id),
        claim.created_at.isoformat(),
        claim.expires_at.isoformat(),
        claim.closed_at and claim.closed_at.isoformat(),
    )
