"""What the commands on servers share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Connection

from conductor_stub.servers import Server
from scheduler import errors, objects
from scheduler.cli import on_bus
from scheduler.db import flavors

LOCAL_USER = "admin"
LOCAL_PROJECT = "admin"
DEFAULT_TIMEOUT_SECONDS = 300.0


class Failed(errors.NovaException):
    """The command did what it could and something of it failed; told already or in the text."""

    msg_fmt = "%(reason)s"


class OnBus(on_bus.OnBus):
    """A command that asks the conductor for something."""

    PARTNER = "conductor"


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
