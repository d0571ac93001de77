"""``claims``: the hosts claimed for instances, and whether they agree with what there is."""

import time
from collections.abc import Sequence
from typing import Any

from scheduler import errors, exit_codes
from scheduler.claims import audit as auditing
from scheduler.claims import loading
from scheduler.cli.command import Base, List, Text, action, argument
from scheduler.db import claims, compute_nodes, inspection, instances, migration, rows
from scheduler.db.database import Database
from scheduler.hosts.host_state import Fitting
from scheduler.semantics import Ratios


def _database(command: Base) -> Database:
    """The one of ``[claims]``, with its tables; an error, also where claims are in Placement."""
    if command.conf.scheduler.claims == loading.PLACEMENT:
        raise errors.ConfigurationError(
            option=loading.OPTION,
            reason="it is placement: the claims are allocations there; `openstack resource "
            "provider allocation show` and `nova-manage placement audit` look at them",
        )
    database = loading.claims_database(command.conf, command.database)
    migration.check_ready(database, needed=inspection.CLAIM_TABLES)
    return database


@action(
    List,
    argument("--host", help="only claims on this host"),
    argument("--all", action="store_true", help="also those closed a while ago"),
    columns=(
        *("Consumer", "Host", "Node", "vCPUs", "Memory MB"),
        *("Disk GB", "Request", "Created", "Expires", "Closed"),
    ),
    nothing="There are no open claims.",
)
def list_claims(command: Base, args: Any) -> Any:
    """List the claims that are open."""
    with _database(command).read() as connection:
        return [
            _row(each) for each in claims.list_all(connection, host=args.host, with_closed=args.all)
        ]


@action(
    Text,
    argument("consumers", metavar="CONSUMER", nargs="*", help="an instance's uuid"),
    argument("--host", help="all open claims on this host"),
    words="{closed} claim(s) closed",
)
def release(command: Base, args: Any) -> dict[str, Any]:
    """Close claims, so that what they hold is free again at once."""
    if bool(args.consumers) == bool(args.host):
        command.parser.error("give each CONSUMER, or else --host")
    database = _database(command)
    with database.read() as connection:
        found = claims.list_all(connection, host=args.host)
    wanted = set(args.consumers)
    missing = sorted(wanted - {each.consumer_uuid for each in found})
    if missing:
        reason = f"no open claim of {', '.join(missing)}"
        raise errors.InvalidRequest(field="CONSUMER", reason=reason)
    over = {e.id: e.generation for e in found if not wanted or e.consumer_uuid in wanted}
    closed = database.write_retrying(lambda conn: claims.close(conn, over, rows.utcnow()))
    return {"closed": closed}


@action(
    List,
    columns=("Difference", "Host", "Node", "Consumer", "What"),
    nothing="Everything agrees.",
)
def audit(command: List, _args: Any) -> Any:
    """Compare claims, instances and compute nodes; any difference ends with status 1."""
    with _database(command).read() as connection:
        found = claims.list_all(connection)
    uuids = [each.consumer_uuid for each in found]
    built: dict[str, Any] = {}
    counts: dict[auditing.Key, int] = {}
    nodes: list[Any] = []
    for database in command.cells.values():
        with database.read() as connection:
            built.update(instances.rows_by_uuid(connection, uuids))
            counts.update(instances.counts_by_node(connection))
            nodes += compute_nodes.list_all(connection)
    fleet = auditing.Fleet(built, counts, nodes)
    ratios, fitting = Ratios.from_conf(command.conf), Fitting.from_conf(command.conf)
    different = auditing.differences(found, fleet, ratios, fitting, time.time())
    if different:
        command.status = exit_codes.FAILURE
    command.nothing = f"{len(found)} open claim(s), and everything agrees."
    return [(each.kind, each.host, each.node, each.consumer_uuid, each.what) for each in different]


def _row(claim: Any) -> Sequence[Any]:
    return (
        *(claim.consumer_uuid, claim.host, claim.node, claim.vcpus, claim.memory_mb),
        *(claim.disk_gb, claim.request_id.partition("/")[0]),
        claim.created_at.isoformat(),
        claim.expires_at.isoformat(),
        claim.closed_at and claim.closed_at.isoformat(),
    )
