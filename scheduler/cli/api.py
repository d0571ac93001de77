"""Commands on rows of the API: ``aggregate``, ``flavor`` and ``group``."""

import argparse
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.cli.command import (
    Base,
    List,
    Names,
    Properties,
    Show,
    Text,
    api_action,
    api_reader,
    argument,
    non_negative,
    pairs_option,
    positive,
    repeated,
)
from scheduler.db import aggregates, compute_nodes, flavors, groups, services

ZONE = "availability_zone"
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
MAX_SERVER_PER_HOST = "max_server_per_host"

_DELETED = "Deleted: {deleted}"
_AGGREGATE = argument("aggregate", metavar="AGGREGATE", help="its name or id")
_METADATA = (
    argument("--zone", help="availability zone of its hosts; an empty text takes it away"),
    pairs_option("metadata that filters and weighers read"),
)
_SIZES = (
    ("--ram", "memory_mb", "RAM_MB", 256, "memory in MB"),
    ("--vcpus", "vcpus", "VCPUS", 1, "virtual CPUs"),
    ("--disk", "root_gb", "DISK_GB", 0, "root disk in GB"),
    ("--ephemeral", "ephemeral_gb", "EPHEMERAL_GB", 0, "ephemeral disk in GB"),
    ("--swap", "swap", "SWAP_MB", 0, "swap space in MB"),
)


def name_text(text: str) -> str:
    """A name as the columns of names hold it; anything else is a usage error."""
    if not 1 <= len(text) <= 255:
        raise argparse.ArgumentTypeError(f"a name has 1 to 255 characters, not {len(text)}")
    return text


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


def _metadata(args: argparse.Namespace) -> dict[str, str | None]:
    zone = {} if args.zone is None else {ZONE: args.zone or None}
    return {**dict(args.properties), **zone}


@api_reader(
    List,
    columns=("ID", "Name", "Availability Zone", "Hosts", "Properties"),
    nothing="There are no aggregates.",
)
def aggregate_list(_command: Base, connection: Connection, _args: Any) -> Any:
    """List the aggregates."""
    return map(_aggregate_fields, aggregates.list_all(connection))


@api_action(Show, argument("name", metavar="NAME", type=name_text), *_METADATA)
def aggregate_create(_command: Base, connection: Connection, args: Any) -> Any:
    """Create an aggregate."""
    metadata = {key: value for key, value in _metadata(args).items() if value is not None}
    return _aggregate_fields(aggregates.create(connection, args.name, metadata))


@api_reader(Show, _AGGREGATE)
def aggregate_show(_command: Base, connection: Connection, args: Any) -> Any:
    """Show one aggregate."""
    return _aggregate_fields(aggregates.get(connection, args.aggregate))


@api_action(
    Show,
    _AGGREGATE,
    argument("--name", type=name_text, help="the new name"),
    *_METADATA,
    argument("--no-property", action="store_true", help="first remove all properties but the zone"),
)
def aggregate_set(command: Base, connection: Connection, args: Any) -> Any:
    """Rename an aggregate, set its zone or its properties."""
    found = aggregates.get(connection, args.aggregate)
    metadata: dict[str, str | None] = {}
    if args.no_property:
        metadata = {key: None for key in found.metadata if key != ZONE}
    metadata.update(_metadata(args))
    if not metadata and not args.name and not args.no_property:
        command.parser.error("one of --name, --zone, --property and --no-property is needed")
    if args.name:
        aggregates.rename(connection, found.id, args.name)
    aggregates.set_metadata(connection, found.id, metadata)
    return _aggregate_fields(aggregates.get(connection, found.id))


@api_action(Show, _AGGREGATE, argument("host", metavar="HOST"))
def aggregate_add_host(_command: Base, connection: Connection, args: Any) -> Any:
    """Put a compute host into an aggregate."""
    number = aggregates.get(connection, args.aggregate).id
    if not compute_nodes.list_all(connection, args.host):
        services.get(connection, args.host, services.COMPUTE_BINARY)  # or else it is unknown
    aggregates.add_host(connection, number, args.host)
    return _aggregate_fields(aggregates.get(connection, number))


@api_action(Show, _AGGREGATE, argument("host", metavar="HOST"))
def aggregate_remove_host(_command: Base, connection: Connection, args: Any) -> Any:
    """Take a host out of an aggregate."""
    number = aggregates.get(connection, args.aggregate).id
    aggregates.remove_host(connection, number, args.host)
    return _aggregate_fields(aggregates.get(connection, number))


@api_action(
    Text,
    argument("aggregates", metavar="AGGREGATE", nargs="+", help="its name or id"),
    words=_DELETED,
)
def aggregate_delete(_command: Base, connection: Connection, args: Any) -> dict[str, Any]:
    """Delete aggregates; their hosts stay."""
    for name in args.aggregates:
        aggregates.delete(connection, aggregates.get(connection, name).id)
    return {"deleted": args.aggregates}


def _flavor_fields(flavor: objects.Flavor) -> dict[str, Any]:
    return {
        "id": flavor.flavorid,
        "name": flavor.name,
        "ram_mb": flavor.memory_mb,
        "vcpus": flavor.vcpus,
        "disk_gb": flavor.root_gb,
        "ephemeral_gb": flavor.ephemeral_gb,
        "swap_mb": flavor.swap,
        "is_public": flavor.is_public,
        "disabled": flavor.disabled,
        "properties": Properties(flavor.extra_specs),
        "projects": Names(flavor.projects),
    }


@api_reader(
    List,
    columns=(
        *("ID", "Name", "RAM MB", "Disk GB", "Ephemeral GB", "Swap MB", "vCPUs", "Is Public"),
    ),
    nothing="There are no flavors.",
)
def flavor_list(_command: Base, connection: Connection, _args: Any) -> Any:
    """List the flavors."""
    return map(_flavor_fields, flavors.list_all(connection))


@api_action(
    Show,
    argument("name", metavar="NAME", type=name_text),
    argument("--id", default="auto", help="default: a new uuid"),
    *(
        argument(
            option,
            dest=dest,
            metavar=metavar,
            type=positive if default else non_negative,
            default=default,
            help=f"{text} (default {default})",
        )
        for option, dest, metavar, default, text in _SIZES
    ),
    argument("--private", action="store_true", help="not for every project (default: public)"),
    repeated("--project", "ID", "a project that may use a private flavor", dest="projects"),
    pairs_option("an extra spec"),
)
def flavor_create(command: Base, connection: Connection, args: Any) -> Any:
    """Create a flavor."""
    if args.projects and not args.private:
        command.parser.error("--project needs --private")
    flavor = objects.Flavor(
        name=args.name,
        is_public=not args.private,
        extra_specs=dict(args.properties),
        projects=args.projects,
        **{dest: getattr(args, dest) for _option, dest, *_others in _SIZES},
    )
    if args.id != "auto":
        flavor.flavorid = args.id
    return _flavor_fields(flavors.create(connection, flavor))


@api_reader(Show, argument("flavor", metavar="FLAVOR", help="its id or name"))
def flavor_show(_command: Base, connection: Connection, args: Any) -> Any:
    """Show one flavor."""
    return _flavor_fields(find_flavor(connection, args.flavor))


@api_action(
    Text, argument("flavors", metavar="FLAVOR", nargs="+", help="its id or name"), words=_DELETED
)
def flavor_delete(_command: Base, connection: Connection, args: Any) -> dict[str, Any]:
    """Delete flavors; servers built from them keep their size."""
    for text in args.flavors:
        flavors.delete(connection, find_flavor(connection, text).id)
    return {"deleted": args.flavors}


def find_flavor(connection: Connection, id_or_name: str) -> objects.Flavor:
    """The flavor of that id, or else of that name; raises FlavorNotFound."""
    try:
        return flavors.get(connection, "flavorid", id_or_name)
    except errors.FlavorNotFound:
        return flavors.get(connection, "name", id_or_name)


@api_reader(
    List,
    columns=("ID", "Name", "Policy", "Rules", "Members"),
    nothing="There are no server groups.",
)
def group_list(_command: Base, connection: Connection, _args: Any) -> Any:
    """List the server groups and how many members they have."""
    found = groups.list_all(connection)
    return [{**_group_fields(each, ()), "members": len(each.members)} for each in found]


@api_action(
    Show,
    argument("name", metavar="NAME", type=name_text),
    argument("--policy", choices=POLICIES, default="affinity"),
    pairs_option(
        f"{MAX_SERVER_PER_HOST}=N: with anti-affinity, so many members may share a host",
        "--rule",
        "rules",
    ),
)
def group_create(command: Base, connection: Connection, args: Any) -> Any:
    """Create a server group."""
    rules = _rules(command.parser, args)
    return _group_fields(groups.create(connection, args.name, args.policy, rules), ())


def _rules(parser: argparse.ArgumentParser, args: Any) -> dict[str, int]:
    rules = dict(args.rules)
    unknown = sorted(set(rules) - {MAX_SERVER_PER_HOST})
    if unknown:
        parser.error(f"no such rule: {', '.join(unknown)} (known: {MAX_SERVER_PER_HOST})")
    if rules and args.policy != "anti-affinity":
        parser.error(f"{MAX_SERVER_PER_HOST} is a rule of the policy anti-affinity only")
    try:
        return {key: positive(value) for key, value in rules.items()}
    except argparse.ArgumentTypeError as error:
        parser.error(f"{MAX_SERVER_PER_HOST}: {error}")


@api_reader(Show, argument("group", metavar="GROUP", help="its uuid or name"))
def group_show(command: Base, connection: Connection, args: Any) -> Any:
    """Show one server group, its members and the hosts they are on."""
    group = groups.get(connection, args.group)
    return _group_fields(group, command.read_cells(lambda conn: groups.member_hosts(conn, group)))


def _group_fields(group: objects.InstanceGroup, hosts: Sequence[str]) -> dict[str, Any]:
    return {
        "id": group.uuid,
        "name": group.name,
        "policy": group.policy,
        "rules": Properties(group.rules),
        "members": Names(group.members),
        "hosts": Names(sorted(hosts)),
    }
