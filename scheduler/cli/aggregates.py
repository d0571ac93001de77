"""``aggregate``: named sets of hosts, their availability zone and metadata."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from scheduler import objects
from scheduler.cli import cells, command
from scheduler.db import aggregates, compute_nodes, services

COLUMNS = ("ID", "Name", "Availability Zone", "Hosts", "Properties")
ZONE = "availability_zone"
Shown = tuple[Sequence[str], Iterable[Any]]


def fields(aggregate: objects.Aggregate) -> dict[str, Any]:
    """Everything about one aggregate; the zone is not repeated among the properties."""
    others = {key: value for key, value in aggregate.metadata.items() if key != ZONE}
    return {
        "id": aggregate.id,
        "uuid": aggregate.uuid,
        "name": aggregate.name,
        ZONE: aggregate.availability_zone,
        "hosts": cells.Names(list(aggregate.hosts)),
        "properties": cells.Properties(others),
    }


class List(command.List):
    """List the aggregates."""

    is_of_api = True

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - cliff passes it
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Read the aggregates."""
        with self.database.read() as connection:
            found = [fields(each) for each in aggregates.list_all(connection)]
        shown = ("id", "name", ZONE, "hosts", "properties")
        return COLUMNS, [[each[name] for name in shown] for each in found]


class Create(command.Show):
    """Create an aggregate."""

    is_of_api = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Name, zone and other metadata."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME")
        _add_metadata_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Create it, then show it."""
        created = self.database.write_retrying(
            lambda connection: aggregates.create(
                connection, parsed_args.name, _metadata(parsed_args)
            )
        )
        return self.dict2columns(fields(created))


class _OfAggregate(command.Base):
    """A command on one existing aggregate."""

    is_of_api = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The aggregate."""
        parser = super().get_parser(prog_name)
        parser.add_argument("aggregate", metavar="AGGREGATE", help="its name or id")
        return parser


class Show(_OfAggregate, command.Show):
    """Show one aggregate."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Read the aggregate."""
        with self.database.read() as connection:
            return self.dict2columns(fields(aggregates.get(connection, parsed_args.aggregate)))


class _Change(_OfAggregate, command.Show):
    """A change to one aggregate, which is shown afterwards."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Make the change and show the result."""

        def change(connection: Connection) -> objects.Aggregate:
            found = aggregates.get(connection, parsed_args.aggregate)
            self.change(connection, found, parsed_args)
            return aggregates.get(connection, found.id)

        return self.dict2columns(fields(self.database.write_retrying(change)))

    def change(
        self,
        connection: Connection,
        aggregate: objects.Aggregate,
        parsed_args: argparse.Namespace,
    ) -> None:
        """What the command does to *aggregate*."""
        raise NotImplementedError


class Set(_Change):
    """Rename an aggregate, set its zone or its properties."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """What to set."""
        self.parser = super().get_parser(prog_name)
        self.parser.add_argument("--name", help="the new name")
        _add_metadata_options(self.parser)
        self.parser.add_argument(
            "--no-property", action="store_true", help="first remove all properties but the zone"
        )
        return self.parser

    def change(
        self,
        connection: Connection,
        aggregate: objects.Aggregate,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Set what is given, leave the rest."""
        metadata: dict[str, str | None] = {}
        if parsed_args.no_property:
            metadata = {key: None for key in aggregate.metadata if key != ZONE}
        metadata.update(_metadata(parsed_args))
        if not metadata and not parsed_args.name and not parsed_args.no_property:
            self.parser.error("one of --name, --zone, --property and --no-property is needed")
        if parsed_args.name:
            aggregates.rename(connection, aggregate.id, parsed_args.name)
        aggregates.set_metadata(connection, aggregate.id, metadata)


class _ChangeOfHost(_Change):
    """A change that names a host."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The host."""
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="HOST")
        return parser


class AddHost(_ChangeOfHost):
    """Put a compute host into an aggregate."""

    def change(
        self,
        connection: Connection,
        aggregate: objects.Aggregate,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Add the host, which must have a compute node or a compute service."""
        host = parsed_args.host
        if not compute_nodes.list_all(connection, host):
            services.get(connection, host, services.COMPUTE_BINARY)
        aggregates.add_host(connection, aggregate.id, host)


class RemoveHost(_ChangeOfHost):
    """Take a host out of an aggregate."""

    def change(
        self,
        connection: Connection,
        aggregate: objects.Aggregate,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Remove the host."""
        aggregates.remove_host(connection, aggregate.id, parsed_args.host)


class Delete(command.Base):
    """Delete aggregates; their hosts stay."""

    is_of_api = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The aggregates."""
        parser = super().get_parser(prog_name)
        parser.add_argument("aggregates", metavar="AGGREGATE", nargs="+", help="its name or id")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete all of them or, if one does not exist, none."""

        def delete(connection: Connection) -> None:
            for name in parsed_args.aggregates:
                aggregates.delete(connection, aggregates.get(connection, name).id)

        self.database.write_retrying(delete)


def _add_metadata_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--zone", help="availability zone of its hosts")
    command.add_pairs_option(parser, "metadata that filters and weighers read")


def _metadata(parsed_args: argparse.Namespace) -> dict[str, str]:
    metadata = dict(parsed_args.properties)
    if parsed_args.zone:
        metadata[ZONE] = parsed_args.zone
    return metadata
