"""``aggregate`` and ``group``: sets of hosts with their metadata, sets of servers with a policy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, ClassVar

from sqlalchemy import Connection

from scheduler import objects
from scheduler.cli import command
from scheduler.cli.command import Names, Properties, argument
from scheduler.db import aggregates, compute_nodes, groups, services

ZONE = "availability_zone"
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
MAX_SERVER_PER_HOST = "max_server_per_host"

_AGGREGATE = argument("aggregate", metavar="AGGREGATE", help="its name or id")
_METADATA = (
    argument("--zone", help="availability zone of its hosts"),
    command.pairs_option("metadata that filters and weighers read"),
)


def _aggregate_fields(aggregate: objects.Aggregate) -> dict[str, Any]:
    """Everything about one aggregate; the zone is not repeated among the properties."""
    others = {key: value for key, value in aggregate.metadata.items() if key != ZONE}
    return {
        "id": aggregate.id,
        "uuid": aggregate.uuid,
        "name": aggregate.name,
        ZONE: aggregate.availability_zone,
        "hosts": Names(aggregate.hosts),
        "properties": Properties(others),
    }


def _metadata(parsed_args: argparse.Namespace) -> dict[str, Any]:
    zone = {ZONE: parsed_args.zone} if parsed_args.zone else {}
    return {**dict(parsed_args.properties), **zone}


class AggregateList(command.ListOfApi):
    """List the aggregates."""

    columns = {
        "ID": "id",
        "Name": "name",
        "Availability Zone": ZONE,
        "Hosts": "hosts",
        "Properties": "properties",
    }

    def do(self, connection: Connection, args: argparse.Namespace) -> Any:  # noqa: ARG002
        """Read the aggregates."""
        return map(_aggregate_fields, aggregates.list_all(connection))


class AggregateCreate(command.ShowOfApi):
    """Create an aggregate."""

    arguments = (argument("name", metavar="NAME"), *_METADATA)

    def do(self, connection: Connection, args: argparse.Namespace) -> Any:
        """Create it."""
        return _aggregate_fields(aggregates.create(connection, args.name, _metadata(args)))


class AggregateShow(command.ShowOfApi):
    """Show one aggregate."""

    writes = False
    arguments: ClassVar[Sequence[command.Argument]] = (_AGGREGATE,)

    def do(self, connection: Connection, args: argparse.Namespace) -> Any:
        """Change what is to be changed, and read the aggregate."""
        found = aggregates.get(connection, args.aggregate)
        if self.writes:
            self.change(connection, found, args)
            found = aggregates.get(connection, found.id)
        return _aggregate_fields(found)

    def change(self, connection: Connection, aggregate: objects.Aggregate, args: Any) -> None:
        """Change *aggregate* as *args* say."""


class AggregateSet(AggregateShow):
    """Rename an aggregate, set its zone or its properties."""

    writes = True
    arguments = (
        _AGGREGATE,
        argument("--name", help="the new name"),
        *_METADATA,
        argument(
            "--no-property", action="store_true", help="first remove all properties but the zone"
        ),
    )

    def change(self, connection: Connection, aggregate: objects.Aggregate, args: Any) -> None:
        """Set what is given, leave the rest."""
        metadata: dict[str, str | None] = {}
        if args.no_property:
            metadata = {key: None for key in aggregate.metadata if key != ZONE}
        metadata.update(_metadata(args))
        if not metadata and not args.name and not args.no_property:
            self.parser.error("one of --name, --zone, --property and --no-property is needed")
        if args.name:
            aggregates.rename(connection, aggregate.id, args.name)
        aggregates.set_metadata(connection, aggregate.id, metadata)


class AggregateAddHost(AggregateShow):
    """Put a compute host into an aggregate."""

    writes = True
    arguments = (_AGGREGATE, argument("host", metavar="HOST"))

    def change(self, connection: Connection, aggregate: objects.Aggregate, args: Any) -> None:
        """Add the host, which must have a compute node or a compute service."""
        if not compute_nodes.list_all(connection, args.host):
            services.get(connection, args.host, services.COMPUTE_BINARY)
        aggregates.add_host(connection, aggregate.id, args.host)


class AggregateRemoveHost(AggregateShow):
    """Take a host out of an aggregate."""

    writes = True
    arguments = AggregateAddHost.arguments

    def change(self, connection: Connection, aggregate: objects.Aggregate, args: Any) -> None:
        """Remove the host."""
        aggregates.remove_host(connection, aggregate.id, args.host)


class AggregateDelete(command.OfApi):
    """Delete aggregates; their hosts stay."""

    arguments = (argument("aggregates", metavar="AGGREGATE", nargs="+", help="its name or id"),)

    def do(self, connection: Connection, args: argparse.Namespace) -> Any:
        """Delete all of them or, if one does not exist, none."""
        for name in args.aggregates:
            aggregates.delete(connection, aggregates.get(connection, name).id)


class GroupList(command.ListOfApi):
    """List the server groups and how many members they have."""

    columns = {
        "ID": "id",
        "Name": "name",
        "Policy": "policy",
        "Rules": "rules",
        "Members": "count",
    }

    def do(self, connection: Connection, args: argparse.Namespace) -> Any:  # noqa: ARG002
        """Read the groups."""
        found = groups.list_all(connection)
        return [{**_group_fields(each, ()), "count": len(each.members)} for each in found]


class GroupCreate(command.ShowOfApi):
    """Create a server group."""

    arguments = (
        argument("name", metavar="NAME"),
        argument("--policy", choices=POLICIES, default="affinity"),
        command.pairs_option(
            f"{MAX_SERVER_PER_HOST}=N: with anti-affinity, so many members may share a host",
            "--rule",
            "rules",
        ),
    )

    def do(self, connection: Connection, args: argparse.Namespace) -> Any:
        """Create it."""
        return _group_fields(
            groups.create(connection, args.name, args.policy, self._rules(args)), ()
        )

    def _rules(self, args: argparse.Namespace) -> dict[str, int]:
        rules = dict(args.rules)
        unknown = sorted(set(rules) - {MAX_SERVER_PER_HOST})
        if unknown:
            self.parser.error(f"no such rule: {', '.join(unknown)} (known: {MAX_SERVER_PER_HOST})")
        if rules and args.policy != "anti-affinity":
            self.parser.error(f"{MAX_SERVER_PER_HOST} is a rule of the policy anti-affinity only")
        try:
            return {key: command.positive(value) for key, value in rules.items()}
        except argparse.ArgumentTypeError as error:
            self.parser.error(f"{MAX_SERVER_PER_HOST}: {error}")


class GroupShow(command.ShowOfApi):
    """Show one server group, its members and the hosts they are on."""

    writes = False
    arguments = (argument("group", metavar="GROUP", help="its uuid or name"),)

    def do(self, connection: Connection, args: argparse.Namespace) -> Any:
        """Read the group, and in all cells its members."""
        group = groups.get(connection, args.group)
        return _group_fields(group, self.read_cells(lambda conn: groups.member_hosts(conn, group)))


def _group_fields(group: objects.InstanceGroup, hosts: Sequence[str]) -> dict[str, Any]:
    return {
        "id": group.uuid,
        "name": group.name,
        "policy": group.policy,
        "rules": Properties(group.rules),
        "members": Names(group.members),
        "hosts": Names(sorted(hosts)),
    }
