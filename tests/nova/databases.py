"""The databases of a Nova deployment, created by Nova's own tools (page database, section 9)."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy

from tests.servers.mariadb import MariaDB
from tests.servers.private import unique_name
from tests.world import databases
from tests.world.deployment import Settings, render

#: Tables whose rows are part of what Nova's tools make.
KEPT = {"alembic_version", "cell_mappings"}
COMMAND_SECONDS = 240
#: Nova wants each cell on a bus of its own, which nobody uses here.
NOBODY = "rabbit://nobody"
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

    def empty(self) -> None:
        """Remove all rows but those that say which cells there are."""
        for url in (self.api_url, *self.cells.values()):
            with databases.transaction(url) as connection:
                tables = set(sqlalchemy.inspect(connection).get_table_names()) - KEPT
                connection.exec_driver_sql("SET foreign_key_checks = 0")
                for name in sorted(tables):
                    connection.exec_driver_sql(f"DELETE FROM {name}")

    def configured(self, folder: Path, *several: Settings) -> NovaDatabases:
        """The same databases with a configuration file of their own in *folder*."""
        connections = {
            "api_database": {"connection": self.api_url},
            "database": {"connection": self.cell_url},
        }
        made = dataclasses.replace(self, config=folder / "nova.conf")
        made.config.write_text(render(merged(connections, *several)), encoding="utf-8")
        return made


def create(
    mariadb: MariaDB,
    python: Path,
    folder: Path,
    *,
    cells: Sequence[str] = ("cell1",),
    bus: str | None = None,
) -> NovaDatabases:
    """Make empty databases with Nova's tables on *mariadb*, and *folder*/nova.conf for Nova.

    All cells are on *bus* if it is named.  The databases stay until the server goes: to drop some
    four hundred tables takes as long as to make them.
    """
    prefix = unique_name("nova")
    for name in ("api", "cell0", *cells):
        mariadb.create_database(f"{prefix}_{name}")
    urls = {name: f"{mariadb.url(f'{prefix}_{name}')}?charset=utf8mb4" for name in cells}
    api_url = f"{mariadb.url(f'{prefix}_api')}?charset=utf8mb4"
    made = NovaDatabases(python, folder / "nova.conf", api_url, urls)
    made = made.configured(folder, {"DEFAULT": {"transport_url": NOBODY}})
    made.manage("api_db", "sync")
    made.manage("cell_v2", "map_cell0", "--database_connection", mariadb.url(f"{prefix}_cell0"))
    for name, url in urls.items():
        target = ["--database_connection", url, "--transport-url", bus or f"{NOBODY}/{name}"]
        made.manage("cell_v2", "create_cell", "--name", name, *target)
    made.manage("db", "sync")
    for name, url in list(urls.items())[1:]:
        sync_other_cell(made, name, url)
    return made


def merged(*several: Settings) -> dict[str, dict[str, Any]]:
    """Settings added up, the last one winning."""
    made: dict[str, dict[str, Any]] = {}
    for settings in several:
        for group, options in settings.items():
            made.setdefault(group, {}).update(options)
    return made


def sync_other_cell(made: NovaDatabases, name: str, url: str) -> None:
    """Make the tables of a further cell: ``db sync`` does so for ``[database]`` and cell0 only."""
    config = made.config.with_name(f"{name}.conf")
    config.write_text(render({"database": {"connection": url}}), encoding="utf-8")
    NovaDatabases(made.python, config, made.api_url, {name: url}).manage(
        "db", "sync", "--local_cell"
    )
