"""``flavor``: sizes of servers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.cli import command
from scheduler.cli.command import Base, Names, Properties, api_action, api_reader, argument
from scheduler.db import flavors

SIZES = (
    ("--ram", "memory_mb", "RAM_MB", 256, "memory in MB"),
    ("--vcpus", "vcpus", "VCPUS", 1, "virtual CPUs"),
    ("--disk", "root_gb", "DISK_GB", 0, "root disk in GB"),
    ("--ephemeral", "ephemeral_gb", "EPHEMERAL_GB", 0, "ephemeral disk in GB"),
    ("--swap", "swap", "SWAP_MB", 0, "swap space in MB"),
)
COLUMNS = {
    "ID": "id",
    "Name": "name",
    "RAM MB": "ram_mb",
    "Disk GB": "disk_gb",
    "Ephemeral GB": "ephemeral_gb",
    "Swap MB": "swap_mb",
    "vCPUs": "vcpus",
    "Is Public": "is_public",
}


def _fields(flavor: objects.Flavor) -> dict[str, Any]:
    """Everything about one flavor."""
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


@api_reader(command.List, columns=COLUMNS)
def flavor_list(_command: Base, connection: Connection, _args: Any) -> Any:
    """List the flavors."""
    return map(_fields, flavors.list_all(connection))


@api_action(
    command.Show,
    argument("name", metavar="NAME"),
    argument("--id", default="auto", help="default: a new uuid"),
    *(
        argument(
            option,
            dest=dest,
            metavar=metavar,
            type=command.positive if default else command.non_negative,
            default=default,
            help=f"{text} (default {default})",
        )
        for option, dest, metavar, default, text in SIZES
    ),
    argument("--private", action="store_true", help="not for every project (default: public)"),
    argument(
        "--project",
        dest="projects",
        action="append",
        default=[],
        help="a project that may use a private flavor; may be repeated",
    ),
    command.pairs_option("an extra spec"),
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
        **{dest: getattr(args, dest) for _option, dest, *_others in SIZES},
    )
    if args.id != "auto":
        flavor.flavorid = args.id
    return _fields(flavors.create(connection, flavor))


@api_reader(command.Show, argument("flavor", metavar="FLAVOR", help="its id or name"))
def flavor_show(_command: Base, connection: Connection, args: Any) -> Any:
    """Show one flavor."""
    return _fields(_find(connection, args.flavor))


@api_action(Base, argument("flavors", metavar="FLAVOR", nargs="+", help="its id or name"))
def flavor_delete(_command: Base, connection: Connection, args: Any) -> None:
    """Delete flavors; servers built from them keep their size."""
    for text in args.flavors:
        flavors.delete(connection, _find(connection, text).id)


def _find(connection: Connection, id_or_name: str) -> objects.Flavor:
    try:
        return flavors.get(connection, "flavorid", id_or_name)
    except errors.FlavorNotFound:
        return flavors.get(connection, "name", id_or_name)
