"""The commands on servers there are, and what all commands on servers share."""

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from conductor_stub import booting, servers
from conductor_stub.booting import Wishes
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.records import MoveRequest
from conductor_stub.rpcapi import ComputeTaskAPI
from conductor_stub.server_rows import FLAVOR_SIZES, update_if
from conductor_stub.servers import Server, delete_server, read, watch
from scheduler import errors, exit_codes, objects
from scheduler.cli import bus, command, fleet
from scheduler.cli.api import find_flavor
from scheduler.cli.command import Argument, argument
from scheduler.rpc.context import RequestContext

REMOTE_ADDRESS = "127.0.0.1"
DEFAULT_TIMEOUT_SECONDS = 300.0


class Failed(errors.NovaException):
    """The command did what it could and something of it failed; printed already or in the text."""

    msg_fmt = "%(reason)s"


class OnBus(bus.OnBus):
    """A command that asks the conductor for something."""

    PARTNER = "conductor"
    needs_tables = True

    def shown(self, uuids: Sequence[str]) -> Sequence[Server]:
        """The servers as they are now."""
        with self.database.read() as conn:
            return read(conn, uuids)


def _seconds(text: str) -> float:
    """A time that may be endless; anything else is a usage error."""
    with contextlib.suppress(ValueError):
        if (seconds := float(text)) >= 0:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")


def wait_arguments(what: str) -> tuple[Argument, Argument]:
    """``--wait`` and ``--timeout``."""
    return (
        argument("--wait", action="store_true", help=f"wait until {what}"),
        argument(
            "--timeout",
            type=_seconds,
            default=DEFAULT_TIMEOUT_SECONDS,
            metavar="SECONDS",
            help="how long to wait at most (default: %(default)g)",
        ),
    )


_SERVER = argument("server", metavar="SERVER", help="name or id")


def facts(server: Server, zones: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
    """The values of a server by the keys of columns; *zones* are those of the hosts."""
    instance, fault = server.instance, server.fault
    zone = instance.availability_zone
    if zones and instance.host is not None:  # where it is now, which a move may have changed
        zone = zones[instance.host][0]
    return {
        "id": server.uuid,
        "name": server.name,
        "state": server.state,
        "host": instance.host,
        "flavor": instance.flavor and instance.flavor.name,
        "zone": zone,
        "node": instance.node,
        "attempts": server.attempts,
        "image": instance.image_ref,
        "project": instance.project_id,
        "user": instance.user_id,
        "properties": command.Properties(instance.metadata),
        "fault": fault and fault.message,
    }


class List(command.List):
    """List the servers."""

    needs_tables = True
    nothing = "There are no servers."
    columns: Sequence[str] = ("ID", "Name", "State", "Host", "Flavor", "Zone")

    arguments = (argument("--long", action="store_true", help="more columns"),)

    def act(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Read them."""
        zones = fleet.zones_by_host(self)
        if parsed_args.long:
            more = ("Node", "Attempts", "Image", "Project", "User", "Properties", "Fault")
            self.columns = (*self.columns, *more)
        with self.database.read() as conn:
            return [facts(each, zones) for each in read(conn)]


class Show(command.Show):
    """Show everything about one server."""

    needs_tables = True
    arguments = (_SERVER,)

    def act(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Read it."""
        zones = fleet.zones_by_host(self)
        with self.database.read() as conn:
            (server,) = servers.find(conn, [parsed_args.server])
        instance, fault = server.instance, server.fault
        return {
            **facts(server, zones),
            **{name: getattr(instance, name) for name in FLAVOR_SIZES},
            "created_at": str(instance.created_at),
            "launched_at": instance.launched_at and str(instance.launched_at),
            "fault_code": fault and fault.code,
            "fault_host": fault and fault.host,
        }


MOVING = "resize_prep"
MOVABLE = ("active", "stopped")


class _Move(OnBus, command.List):
    """One server, asked of its conductor and waited for."""

    nothing = "The server is gone."
    columns = ("ID", "Name", "Host", "Flavor", "State", "Fault")

    arguments: ClassVar[Sequence[Argument]] = (
        _SERVER,
        *wait_arguments("the server is on its new host"),
    )

    def act(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Ask the conductor, which answers when a host has been found and the cast sent.

        The status is FAILURE also when the server is where it was in the end.
        """
        with self.database.read() as conn:
            (server,) = servers.find(conn, [parsed_args.server])
            flavor = server.instance.flavor
            if "flavor" in parsed_args:
                flavor = find_flavor(conn, parsed_args.flavor)
        request = self._request(server, flavor)
        with self.bus() as connection:
            self._begin(server)
            self._ask(ComputeTaskAPI(connection, retry=bus.BROKER_RETRIES), request, server)
        if parsed_args.wait:
            seen = self._wait(server, parsed_args.timeout)
            if not seen or seen[0].instance.host == request.instance.host:
                self.status = exit_codes.FAILURE
        else:
            seen = self.shown([server.uuid])
        return [facts(each) for each in seen]

    def _request(self, server: Server, flavor: objects.Flavor) -> MoveRequest:
        instance = server.instance
        context = RequestContext(
            user_id=instance.user_id,
            project_id=instance.project_id,
            remote_address=REMOTE_ADDRESS,
        )
        image = booting.image_of_server(instance)
        properties = {"scheduler_hints": {}, "ignore_hosts": [instance.host]}
        wishes = Wishes.from_flavor(flavor, image, self.conf)
        spec = booting.request_of_server(context, instance, image, flavor, wishes, properties)
        return MoveRequest(context, instance, flavor, properties, spec)

    def _begin(self, server: Server) -> None:
        instance = server.instance
        if instance.vm_state not in MOVABLE or instance.host is None:
            reason = f"{server.name} is {server.state}, only a server that is built can be moved"
            raise Failed(reason=reason)
        if not self.database.write_retrying(
            lambda conn: update_if(conn, instance.uuid, {"task_state": None}, task_state=MOVING)
        ):
            raise Failed(reason=f"{server.name} has another task in hand")
        instance.task_state = MOVING

    def _ask(self, conductor: ComputeTaskAPI, request: MoveRequest, server: Server) -> None:
        try:
            conductor.migrate_server(request)
        except (errors.NovaException, *bus.UNDELIVERED) as error:
            self.database.write_retrying(
                lambda conn: update_if(conn, server.uuid, {"task_state": MOVING}, task_state=None)
            )
            raise Failed(reason=errors.message_of(error)) from error

    def _wait(self, server: Server, timeout: float) -> Sequence[Server]:
        def moved(each: Server) -> bool:
            return each.instance.task_state is None

        def text(seen: Sequence[Server]) -> str:
            return f"{sum(map(moved, seen))} of 1 moved"

        seen, in_time = watch(self.database, [server.uuid], moved, timeout, text)
        if not in_time:
            self.tell(f"not within {timeout:g} seconds: no host has taken {server.name}")
        return seen


class Resize(_Move):
    """Give a server another flavor, on another host."""

    arguments = (
        *_Move.arguments,
        argument("--flavor", required=True, metavar="FLAVOR", help="name or id"),
    )


class Migrate(_Move):
    """Move a server to another host."""


class Delete(OnBus, command.Text):
    """Delete servers."""

    words = "{state}: {servers}"

    arguments = (
        argument("servers", metavar="SERVER", nargs="+", help="name or id"),
        *wait_arguments("the servers are gone"),
    )

    def act(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Cast to the hosts, or delete the rows; wait if that is asked for."""
        with self.database.read() as conn:
            meant = servers.find(conn, parsed_args.servers)
        with self.bus() as connection:
            compute = ComputeAPI(connection, self.conf, self.database, bus.BROKER_RETRIES)
            for each in meant:
                self._delete(compute, each)
        if parsed_args.wait:
            self._wait([each.uuid for each in meant], parsed_args.timeout)
        state = "deleted" if parsed_args.wait else "being deleted"
        return {"state": state, "servers": [each.name for each in meant]}

    def _delete(self, compute: ComputeAPI, server: Server) -> None:
        instance = server.instance
        context = RequestContext(user_id=instance.user_id, project_id=instance.project_id)
        try:
            delete_server(context, self.database, compute, server.uuid)
        except errors.InstanceNotFound:
            self.tell(f"{server.name} was deleted meanwhile")
        except bus.UNDELIVERED as error:
            reason = f"host {instance.host} could not be reached: {errors.message_of(error)}"
            raise Failed(reason=reason) from error

    def _wait(self, uuids: list[str], timeout: float) -> None:
        def text(left: Sequence[Server]) -> str:
            return f"{len(uuids) - len(left)} of {len(uuids)} deleted"

        left, in_time = watch(self.database, uuids, lambda _each: False, timeout, text)
        if not in_time:
            named = ", ".join(f"{each.name} on {each.instance.host}" for each in left)
            raise Failed(reason=f"not within {timeout:g} seconds: no host has deleted {named}")
