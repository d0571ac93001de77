"""The commands on servers there are: list, show, resize, migrate, delete."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, ClassVar

from cliff import columns
from sqlalchemy import Connection

from conductor_stub import booting, request_dicts, servers
from conductor_stub.booting import Wishes
from conductor_stub.cli import base
from conductor_stub.compute_rpcapi import ComputeAPI, compute_api
from conductor_stub.conductor_rpcapi import ComputeTaskAPI
from conductor_stub.records import MoveRequest
from conductor_stub.servers import delete_server
from conductor_stub.stores import Stores
from scheduler import errors, exit_codes, objects
from scheduler.cli import bus, command
from scheduler.cli.command import Argument, Shown, Table, argument
from scheduler.db import instances
from scheduler.db.databases import Databases
from scheduler.rpc.context import RequestContext

COLUMNS = ("ID", "Name", "State", "Host", "Flavor", "Zone")
LONG_COLUMNS = (*COLUMNS, "Node", "Attempts", "Image", "Project", "User", "Properties", "Fault")


_SERVER = argument("server", metavar="SERVER", help="name or id")


class LongText(columns.FormattableColumn[str]):
    """Text of many lines, a traceback for one: people get its last line and how to see the rest."""

    def human_readable(self) -> str:
        """The last line, which of a traceback is the error."""
        lines = self._value.rstrip().splitlines() or [""]
        if len(lines) == 1:
            return lines[0]
        return f"{lines[-1]} (last of {len(lines)} lines; all of them: -f value)"


class List(command.List):
    """List the servers."""

    arguments = (argument("--long", action="store_true", help="more columns"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read them."""
        with self.database.read() as conn:
            found = servers.read(conn)
        if parsed_args.long:
            return LONG_COLUMNS, [(*_brief(each), *_more(each)) for each in found]
        return COLUMNS, [_brief(each) for each in found]


class Show(command.Show):
    """Show everything about one server."""

    arguments = (_SERVER,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        """Read it."""
        with self.database.read() as conn:
            (server,) = servers.find(conn, [parsed_args.server])
        return self.dict2columns(_details(server))


def _brief(server: servers.Server) -> Sequence[Any]:
    instance = server.instance
    flavor, zone = _flavor_name(instance.flavor), instance.availability_zone
    return server.uuid, server.name, server.state, instance.host, flavor, zone


def _more(server: servers.Server) -> Sequence[Any]:
    instance = server.instance
    return (
        *(instance.node, server.attempts, instance.image_ref),
        *(instance.project_id, instance.user_id, command.Properties(instance.metadata)),
        server.fault.message if server.fault else None,
    )


PLACE = ("vm_state", "task_state", "host", "node", "availability_zone")
SIZES = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb")


def _details(server: servers.Server) -> dict[str, Any]:
    instance, fault = server.instance, server.fault
    return {
        "id": server.uuid,
        "name": server.name,
        "state": server.state,
        **{name: getattr(instance, name) for name in PLACE},
        "attempts": server.attempts,
        "flavor": _flavor_name(instance.flavor),
        **{name: getattr(instance, name) for name in SIZES},
        "image": instance.image_ref,
        "project": instance.project_id,
        "user": instance.user_id,
        "properties": command.Properties(instance.metadata),
        "created_at": str(instance.created_at),
        "launched_at": None if instance.launched_at is None else str(instance.launched_at),
        **{f"fault_{name}": getattr(fault, name, None) for name in ("code", "message", "host")},
        "fault_details": LongText(fault.details) if fault and fault.details else None,
    }


def _flavor_name(flavor: objects.Flavor | None) -> str | None:
    return None if flavor is None else flavor.name


MOVED_COLUMNS = ("ID", "Name", "Host", "Flavor", "State", "Fault")
MOVING = "resize_prep"
MOVABLE = ("active", "stopped")


class _Move(base.OnBus, command.List):
    """One server, told to its conductor and waited for."""

    arguments: ClassVar[Sequence[Argument]] = (
        _SERVER,
        *base.wait_arguments("the server is on its new host"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Ask the conductor, which answers when a host has been found and told.

        The status is FAILURE also when the server is where it was in the end.
        """
        with self.database.read() as conn:
            (server,) = servers.find(conn, [parsed_args.server])
            flavor = self._flavor(conn, parsed_args, server)
        request = self._request(server, flavor)
        with self.bus() as connection:
            self._begin(server)
            self._ask(ComputeTaskAPI(connection, retry=bus.BROKER_RETRIES), request, server)
        if not parsed_args.wait:
            with self.database.read() as conn:
                return MOVED_COLUMNS, [_row(each) for each in servers.read(conn, [server.uuid])]
        seen = self._wait(server, parsed_args.timeout)
        if not seen or seen[0].instance.host == request.instance.host:
            self.status = exit_codes.FAILURE
        return MOVED_COLUMNS, [_row(each) for each in seen]

    def _flavor(
        self, conn: Connection, arguments: argparse.Namespace, server: servers.Server
    ) -> objects.Flavor:
        raise NotImplementedError

    def _request(self, server: servers.Server, flavor: objects.Flavor) -> MoveRequest:
        instance = server.instance
        context = RequestContext(user_id=instance.user_id, project_id=instance.project_id)
        image = booting.image_of_server(instance)
        properties = {"scheduler_hints": {}, "ignore_hosts": [instance.host]}
        cells = Wishes.from_flavor(flavor, image, self.conf).cells
        spec = request_dicts.request_of_server(context, instance, image, flavor, cells, properties)
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
        except (errors.NovaException, *bus.UNDELIVERED) as error:
            self.database.write_retrying(
                lambda conn: instances.update(
                    conn, server.uuid, expected_task_state=MOVING, task_state=None
                )
            )
            raise base.Failed(reason=errors.message_of(error)) from error

    def _wait(self, server: servers.Server, timeout: float) -> Sequence[servers.Server]:
        def moved(each: servers.Server) -> bool:
            return each.instance.task_state is None

        seen, in_time = base.follow(
            self.database,
            [server.uuid],
            moved,
            lambda seen: f"{sum(map(moved, seen))} of 1 moved",
            timeout,
        )
        if not in_time:
            self.tell(f"not within {timeout:g} seconds: no host has taken {server.name}")
        return seen


class Resize(_Move):
    """Give a server another flavor, on another host."""

    arguments = (
        *_Move.arguments,
        argument("--flavor", required=True, metavar="FLAVOR", help="name or id"),
    )

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
    instance, fault = server.instance, server.fault
    place = (server.uuid, server.name, instance.host, _flavor_name(instance.flavor))
    return *place, server.state, fault.message if fault else None


class Delete(base.OnBus):
    """Delete servers."""

    arguments = (
        argument("servers", metavar="SERVER", nargs="+", help="name or id"),
        *base.wait_arguments("the servers are gone"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Tell the hosts, or delete the rows; wait if told to."""
        with self.database.read() as conn:
            meant = servers.find(conn, parsed_args.servers)
        stores = Stores(Databases(self.database))
        with self.bus() as connection:
            compute = compute_api(self.conf, stores, connection, bus.BROKER_RETRIES)
            for each in meant:
                self._delete(compute, each)
        if parsed_args.wait:
            self._wait([each.uuid for each in meant], parsed_args.timeout)

    def _delete(self, compute: ComputeAPI, server: servers.Server) -> None:
        instance = server.instance
        context = RequestContext(user_id=instance.user_id, project_id=instance.project_id)
        try:
            delete_server(context, self.database, compute, server.uuid)
        except errors.InstanceNotFound:
            self.tell(f"{server.name} was deleted meanwhile")
        except bus.UNDELIVERED as error:
            reason = f"host {instance.host} could not be told: {errors.message_of(error)}"
            raise base.Failed(reason=reason) from error

    def _wait(self, uuids: list[str], timeout: float) -> None:
        left, in_time = base.follow(
            self.database,
            uuids,
            lambda _each: False,
            lambda left: f"{len(uuids) - len(left)} of {len(uuids)} deleted",
            timeout,
        )
        if not in_time:
            named = ", ".join(f"{each.name} on {each.instance.host}" for each in left)
            raise base.Failed(reason=f"not within {timeout:g} seconds: no host has deleted {named}")
