"""The databases of a Nova deployment, created by Nova's own tools (page database, section 9)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.daemons.deployment import Settings, render
from tests.servers.mariadb import MariaDB
from tests.servers.private import unique_name

COMMAND_SECONDS = 240
#: Nova runs on native threads here, not on eventlet.
THREADING = {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"}


@dataclass(frozen=True)
class NovaDatabases:
    """One API database, cell0, and the cells asked for; the first is that of ``[database]``.

    ``cells`` names each cell's database URL; ``config`` is the file that Nova's programs run on.
    """

    python: Path
    config: Path
    api_url: str
    cells: Mapping[str, str]

    @property
    def cell_url(self) -> str:
        """The database of the first cell."""
        return next(iter(self.cells.values()))

    def manage(self, *arguments: str) -> str:
        """Run ``nova-manage`` to its end; returns its output, raises RuntimeError with it."""
        command = [str(self.python.with_name("nova-manage")), "--config-file", str(self.config)]
        done = subprocess.run(
            [*command, *arguments],
            env={**os.environ, **THREADING},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"nova-manage {arguments} ended with {done.returncode}: {done}")
        return done.stdout

    def discover_hosts(self) -> None:
        """Map the compute hosts that have registered since."""
        self.manage("cell_v2", "discover_hosts", "--strict")


def create(
    mariadb: MariaDB,
    python: Path,
    folder: Path,
    transport_url: str,
    cells: Sequence[str] = ("cell1",),
    settings: Settings | None = None,
) -> NovaDatabases:
    """Make empty databases with Nova's tables on *mariadb*, and *folder*/nova.conf for Nova.

    *settings* are added to that file.
    """
    prefix = unique_name("nova")
    for name in ("api", "cell0", *cells):
        mariadb.create_database(f"{prefix}_{name}")
    urls = {name: f"{mariadb.url(f'{prefix}_{name}')}?charset=utf8mb4" for name in cells}
    api_url = f"{mariadb.url(f'{prefix}_api')}?charset=utf8mb4"
    made = NovaDatabases(python, folder / "nova.conf", api_url, urls)
    own: dict[str, dict[str, Any]] = {
        "DEFAULT": {"transport_url": transport_url},
        "api_database": {"connection": api_url},
        "database": {"connection": made.cell_url},
    }
    for group, options in (settings or {}).items():
        own.setdefault(group, {}).update(options)
    made.config.write_text(render(own), encoding="utf-8")
    made.manage("api_db", "sync")
    made.manage("cell_v2", "map_cell0", "--database_connection", mariadb.url(f"{prefix}_cell0"))
    for name, url in urls.items():
        # Nova wants each cell on a bus of its own, which nobody uses here.
        target = ["--database_connection", url, "--transport-url", f"{transport_url}_{name}"]
        made.manage("cell_v2", "create_cell", "--name", name, *target)
    made.manage("db", "sync")
    for name, url in list(urls.items())[1:]:
        sync_other_cell(made, name, url)
    return made


def sync_other_cell(made: NovaDatabases, name: str, url: str) -> None:
    """Make the tables of a further cell: ``db sync`` does so for ``[database]`` and cell0 only."""
    config = made.config.with_name(f"{name}.conf")
    config.write_text(render({"database": {"connection": url}}), encoding="utf-8")
    NovaDatabases(made.python, config, made.api_url, {name: url}).manage(
        "db", "sync", "--local_cell"
    )


def drop(mariadb: MariaDB, made: NovaDatabases) -> None:
    """Remove the databases; their clients are to be gone."""
    prefix = made.api_url.rpartition("/")[2].partition("?")[0].removesuffix("_api")
    for name in ("api", "cell0", *made.cells):
        mariadb.drop_database(f"{prefix}_{name}")
