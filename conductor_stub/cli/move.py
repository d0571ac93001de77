"""``resize`` and ``migrate``: servers change their host, the former also their flavor."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from conductor_stub import booting, servers
from conductor_stub.booting import Wishes
from conductor_stub.cli import base
from conductor_stub.conductor_rpcapi import ComputeTaskAPI, MoveRequest
from conductor_stub.watching import Watch
from scheduler import errors, exit_codes, faults, objects
from scheduler.cli import command, on_bus
from scheduler.db import instances
from scheduler.rpc.context import RequestContext

COLUMNS = ("ID", "Name", "Host", "Flavor", "State", "Fault")
MOVING = "resize_prep"
MOVABLE = ("active", "stopped")


class _Move(base.OnBus, command.List):
    """One server, told to its conductor and waited for."""

    _failed = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The server, and how long to wait."""
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="SERVER", help="name or id")
        base.add_wait_options(parser, "the server is on its new host")
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Move; FAILURE also when the server is where it was in the end."""
        status = super().run(parsed_args)
        return exit_codes.FAILURE if self._failed else status

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Ask the conductor, which answers when a host has been found and told."""
        with self.database.read() as conn:
            (server,) = servers.find(conn, [parsed_args.server])
            flavor = self._flavor(conn, parsed_args, server)
        request = self._request(server, flavor)
        source = server.instance.host
        with self.bus() as connection:
            self._begin(server)
            self._ask(ComputeTaskAPI(connection, retry=on_bus.BROKER_RETRIES), request, server)
        seen = self._wait(server, parsed_args.timeout) if parsed_args.wait else self._read(server)
        if parsed_args.wait:
            self._failed = seen is None or seen.instance.host == source
        return COLUMNS, [] if seen is None else [_row(seen)]

    def _flavor(
        self, conn: Connection, arguments: argparse.Namespace, server: servers.Server
    ) -> objects.Flavor:
        raise NotImplementedError

    def _request(self, server: servers.Server, flavor: objects.Flavor) -> MoveRequest:
        instance = server.instance
        context = RequestContext(user_id=instance.user_id, project_id=instance.project_id)
        image = booting.image_of_server(instance)
        properties = {"scheduler_hints": {}, "ignore_hosts": [instance.host]}
        spec = objects.RequestSpec.from_components(
            context,
            instance.uuid,
            image,
            flavor,
            Wishes.of(flavor, image, self.conf).cells,
            instance.pci_requests,
            properties,
            None,
            None,
        )
        return MoveRequest(context, instance, flavor, properties, spec)

    def _begin(self, server: servers.Server) -> None:
        instance = server.instance
        if instance.vm_state not in MOVABLE or instance.host is None:
            reason = f"{server.name} is {server.state}, only a server that is built can be moved"
            raise base.Failed(reason=reason)
        if not self.database.write_retrying(
            lambda conn: instances.update(
                conn, instance.uuid, expected_task_state=None, task_state=MOVING
            )
        ):
            raise base.Failed(reason=f"{server.name} has another task in hand")
        instance.task_state = MOVING

    def _ask(self, conductor: ComputeTaskAPI, request: MoveRequest, server: servers.Server) -> None:
        try:
            conductor.migrate_server(request)
        except (errors.NovaException, *on_bus.UNDELIVERED) as error:
            self.database.write_retrying(
                lambda conn: instances.update(
                    conn, server.uuid, expected_task_state=MOVING, task_state=None
                )
            )
            raise base.Failed(reason=faults.message_of(error)) from error

    def _read(self, server: servers.Server) -> servers.Server | None:
        with self.database.read() as conn:
            return next(iter(servers.read(conn, [server.uuid])), None)

    def _wait(self, server: servers.Server, timeout: float) -> servers.Server | None:
        def read() -> list[servers.Server]:
            found = self._read(server)
            return [] if found is None else [found]

        def moved(seen: Sequence[servers.Server]) -> int:
            return sum(each.instance.task_state is None for each in seen)

        def text(seen: Sequence[servers.Server]) -> str:
            return f"{moved(seen)} of 1 moved"

        with base.progress(1, moved, text) as show:
            seen, in_time = Watch(self.database).until(
                read, lambda each: moved(each) == len(each), timeout, show
            )
        if not in_time:
            self.tell(f"not within {timeout:g} seconds: no host has taken {server.name}")
        return seen[0] if seen else None


class Resize(_Move):
    """Give a server another flavor, on another host."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The flavor."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--flavor", required=True, metavar="FLAVOR", help="name or id")
        return parser

    def _flavor(
        self, conn: Connection, arguments: argparse.Namespace, server: servers.Server
    ) -> objects.Flavor:
        del server
        return base.flavor_named(conn, arguments.flavor)


class Migrate(_Move):
    """Move a server to another host."""

    def _flavor(
        self, conn: Connection, arguments: argparse.Namespace, server: servers.Server
    ) -> objects.Flavor:
        del conn, arguments
        flavor: objects.Flavor = server.instance.flavor
        return flavor


def _row(server: servers.Server) -> Sequence[Any]:
    flavor, fault = server.instance.flavor, server.fault
    return (
        server.uuid,
        server.name,
        server.instance.host,
        flavor.name if flavor else None,
        server.state,
        fault.message if fault else None,
    )
