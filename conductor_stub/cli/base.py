"""What the commands on servers share."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import kombu.exceptions
import oslo_messaging as messaging
from oslo_messaging.transport import RPCTransport
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Connection

from conductor_stub.servers import Server
from scheduler import errors, objects
from scheduler.cli import command
from scheduler.db import flavors
from scheduler.rpc import transport

LOCAL_USER = "admin"
LOCAL_PROJECT = "admin"
DEFAULT_TIMEOUT_SECONDS = 300.0
UNDELIVERED = (
    messaging.MessagingException,
    kombu.exceptions.KombuError,
    *transport.REFUSALS,
    OSError,
)
"""What a message that cannot be sent raises; the RPC library does not translate all of it."""
BROKER_RETRIES = 2
"""A person waits: a broker that cannot be reached is given up after so many more attempts."""


class Failed(errors.NovaException):
    """The command did what it could and something of it failed; told already or in the text."""

    msg_fmt = "%(reason)s"


class OnBus(command.Base):
    """A command that sends messages."""

    @contextlib.contextmanager
    def bus(self) -> Iterator[RPCTransport]:
        """The message bus; ConfigurationError when it is one that nobody else can reach."""
        if transport.is_in_process(self.conf):
            raise errors.ConfigurationError(
                option=transport.OPTION,
                reason="the bus inside this process reaches no conductor; name a broker's",
            )
        connection = transport.get_transport(self.conf)
        try:
            yield connection
        finally:
            connection.cleanup()

    def tell(self, text: str) -> None:
        """One line for the person at the terminal, apart from the result."""
        sys.stderr.write(f"{self.app.NAME}: {text}\n")


@contextlib.contextmanager
def progress(
    total: int, done: Callable[[Sequence[Server]], int], text: Callable[[Sequence[Server]], str]
) -> Iterator[Callable[[Sequence[Server]], None]]:
    """A bar on stderr that follows the servers given to the function; lines where it is a file."""
    console = Console(stderr=True)
    columns: list[Any] = [
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    ]
    shown = ""
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)

        def show(servers: Sequence[Server]) -> None:
            nonlocal shown
            description = text(servers)
            bar.update(task, completed=done(servers), description=description)
            if not console.is_terminal and description != shown:
                console.print(description)
            shown = description

        yield show


def add_wait_options(parser: Any, what: str) -> None:
    """``--wait`` and ``--timeout``."""
    parser.add_argument("--wait", action="store_true", help=f"wait until {what}")
    parser.add_argument(
        "--timeout",
        type=float,
        default=DEFAULT_TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="how long to wait at most (default: %(default)g)",
    )


def flavor_named(conn: Connection, name_or_id: str) -> objects.Flavor:
    """The flavor of that name or else of that id; raises FlavorNotFound."""
    try:
        return flavors.get_by_name(conn, name_or_id)
    except errors.FlavorNotFound:
        return flavors.get_by_flavorid(conn, name_or_id)
