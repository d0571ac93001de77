"""Options, progress and waiting that the commands on servers share."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import oslo_messaging as messaging
from oslo_messaging.transport import RPCTransport
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Connection

from conductor_stub import servers
from conductor_stub.scheduler_rpcapi import BaseClient
from conductor_stub.servers import Server, Watch
from scheduler import errors, objects
from scheduler.cli import bus
from scheduler.cli.command import Argument, argument
from scheduler.db import flavors
from scheduler.db.database import Database
from scheduler.rpc.context import get_admin_context

LOCAL_USER = "admin"
LOCAL_PROJECT = "admin"
DEFAULT_TIMEOUT_SECONDS = 300.0


class Failed(errors.NovaException):
    """The command did what it could and something of it failed; told already or in the text."""

    msg_fmt = "%(reason)s"


class OnBus(bus.OnBus):
    """A command that asks the conductor for something."""

    PARTNER = "conductor"


def follow(
    database: Database,
    uuids: Sequence[str],
    is_settled: Callable[[Server], bool],
    text: Callable[[Sequence[Server]], str],
    timeout: float,
) -> tuple[Sequence[Server], bool]:
    """Show servers until all that are left are settled; the servers, and False on a time-out."""

    def read() -> list[Server]:
        with database.read() as conn:
            return servers.read(conn, uuids)

    def settled(seen: Sequence[Server]) -> int:
        return sum(map(is_settled, seen))

    console, shown = Console(stderr=True), ""
    columns: list[Any] = [BarColumn(), MofNCompleteColumn()]
    columns += [TextColumn("{task.description}"), TimeElapsedColumn()]
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(uuids))

        def show(seen: Sequence[Server]) -> None:
            nonlocal shown
            done = len(uuids) - len(seen) + settled(seen)
            bar.update(task, completed=done, description=text(seen))
            if not console.is_terminal and text(seen) != shown:
                console.print(text(seen))
            shown = text(seen)

        return Watch(database).until(read, lambda seen: settled(seen) == len(seen), timeout, show)


def wait_arguments(what: str) -> tuple[Argument, Argument]:
    """``--wait`` and ``--timeout``."""
    return (
        argument("--wait", action="store_true", help=f"wait until {what}"),
        argument(
            "--timeout",
            type=float,
            default=DEFAULT_TIMEOUT_SECONDS,
            metavar="SECONDS",
            help="how long to wait at most (default: %(default)g)",
        ),
    )


def flavor_named(conn: Connection, name_or_id: str) -> objects.Flavor:
    """The flavor of that name or else of that id; raises FlavorNotFound."""
    try:
        return flavors.get(conn, "name", name_or_id)
    except errors.FlavorNotFound:
        return flavors.get(conn, "flavorid", name_or_id)


PROGRAMS: Final = {
    "conductor": "nova-conductor-stub serve",
    "scheduler": "nova-scheduler",
    "compute": "nova-compute-stub",
}
"""The program of each service; its topic has that name unless configured."""

PATIENCE_SECONDS: Final = 30.0
PING_SECONDS: Final = 1.0


def await_services(
    transport: RPCTransport, timeout_seconds: float, tell: Callable[[str], None]
) -> None:
    """Return once each service has answered; raises Failed that names the silent one."""
    patience = min(timeout_seconds, PATIENCE_SECONDS)
    for service, program in PROGRAMS.items():
        topic = transport.conf.scheduler_topic if service == "scheduler" else service
        deadline = time.monotonic() + patience
        client = BaseClient(transport, topic, retry=bus.BROKER_RETRIES)
        was_told = False
        while not _answers(client):
            if time.monotonic() >= deadline:
                raise Failed(
                    reason=f"nothing answers on topic {topic!r}: is {program} running on this bus?"
                )
            if not was_told:
                tell(f"waiting for {program}")
                was_told = True


def _answers(client: BaseClient) -> bool:
    try:
        client.ping(get_admin_context(), "boot", PING_SECONDS)
    except messaging.MessagingTimeout:
        return False
    except bus.UNDELIVERED as error:
        raise Failed(reason=f"the message bus cannot be used: {error}") from error
    return True
