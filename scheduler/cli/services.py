"""``service``: the processes that have a row, and what the operator decides about them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from scheduler import errors, objects
from scheduler.cli import command, status
from scheduler.db import aggregates, services
from scheduler.db.database import Database

COLUMNS = (
    "ID",
    "Binary",
    "Host",
    "Zone",
    "Status",
    "State",
    "Updated At",
    "Disabled Reason",
    "Forced Down",
)


class List(command.List):
    """List the services."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Narrow the list by host and by binary."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--host", help="only the services of this host")
        parser.add_argument("--service", metavar="BINARY", help="only this binary")
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Read the services, in all cells, and their zones."""
        with self.databases.api.read() as connection:
            zones = status.Zones(aggregates.list_all(connection), self.conf)
        found: list[objects.Service] = []
        for database in self.cells.values():
            with database.read() as connection:
                found += services.list_all(connection, parsed_args.service)
        wanted = (each for each in found if parsed_args.host in (None, each.host))
        return COLUMNS, [self._row(each, zones) for each in wanted]

    def _row(self, service: objects.Service, zones: status.Zones) -> Sequence[Any]:
        seen = service.last_seen_up or service.updated_at or service.created_at
        return (
            service.id,
            service.binary,
            service.host,
            zones.of_service(service),
            status.status(service),
            status.state(service, self.conf),
            seen.replace(tzinfo=None).isoformat() if seen else None,
            service.disabled_reason,
            bool(service.forced_down),
        )


class Set(command.Base):
    """Enable or disable a service, or declare it down."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """As ``openstack compute service set``."""
        self.parser = super().get_parser(prog_name)
        switch = self.parser.add_mutually_exclusive_group()
        switch.add_argument("--enable", action="store_true", help="let it be used")
        switch.add_argument("--disable", action="store_true", help="place no server on its host")
        self.parser.add_argument("--disable-reason", metavar="REASON", help="why it is disabled")
        force = self.parser.add_mutually_exclusive_group()
        force.add_argument("--up", action="store_true", help="believe its heartbeats again")
        force.add_argument("--down", action="store_true", help="down, whatever its heartbeats say")
        self.parser.add_argument("host", metavar="HOST")
        self.parser.add_argument("binary", metavar="BINARY", help="for example nova-compute")
        return self.parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Make the changes, all or none."""
        args = parsed_args
        if args.disable_reason is not None and not args.disable:
            self.parser.error("--disable-reason needs --disable")
        if not (args.enable or args.disable or args.up or args.down):
            self.parser.error("one of --enable, --disable, --up and --down is needed")

        def change(connection: Connection) -> None:
            if args.enable or args.disable:
                services.set_disabled(
                    connection, args.host, args.binary, args.disable, args.disable_reason
                )
            if args.up or args.down:
                services.set_forced_down(connection, args.host, args.binary, args.down)

        self._database_of(args.host, args.binary).write_retrying(change)

    def _database_of(self, host: str, binary: str) -> Database:
        """The database that has the service; the main one for a service that none has."""
        for database in self.cells.values():
            with database.read() as connection, contextlib.suppress(errors.ServiceNotFound):
                services.get(connection, host, binary)
                return database
        return self.database
