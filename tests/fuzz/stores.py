"""The databases of a world: of this project's own schema, or laid out as Nova's, with cells."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from scheduler.db import tables
from tests.novas import Nova
from tests.world import fleet

OWN, NOVA = "own", "nova"
SERVERS = (
    "INSERT INTO instances (uuid, host, node, deleted, created_at, project_id, user_id) VALUES "
    "('aaaaaaaa-0000-4000-a000-000000000001', '{host}', '{host}', 0, '2026-01-01', 'p', 'u')",
    "INSERT INTO instance_system_metadata (instance_uuid, key, value, deleted) VALUES "
    "('aaaaaaaa-0000-4000-a000-000000000001', 'image_hw_architecture', 'x86_64', 0)",
)


class Stores:
    """Databases by name, on SQLite; *options* are the sections that make a scheduler read them."""

    def __init__(self, folder: pathlib.Path, layout: str, hosts: Sequence[str]) -> None:
        numbers = itertools.count()
        if layout == NOVA:
            nova = Nova(lambda: f"sqlite:///{folder}/nova{next(numbers)}.sqlite")
            nova.add_cell("a", hosts[:2])
            nova.add_cell("b", hosts[2:])
            nova.add_aggregate(1, fleet.ZONE, hosts[0])
            nova.execute(
                "api",
                "INSERT INTO aggregate_metadata (aggregate_id, key, value) "
                f"VALUES (1, 'availability_zone', '{fleet.ZONE}')",
            )
            urls = nova.urls
            self.options = {
                "database": {"connection": urls["cell0"]},
                "api_database": {"connection": urls["api"]},
            }
            self._engines = {name: sa.create_engine(urls[name]) for name in ("api", "a")}
            servers = "a"
        else:
            url = f"sqlite:///{folder}/nova.sqlite"
            fleet.install(url, hosts)
            self.options = {"database": {"connection": url}}
            self._engines = {"main": sa.create_engine(url)}
            servers = "main"
        with self._engines[servers].begin() as connection:
            for statement in SERVERS:
                connection.exec_driver_sql(statement.format(host=hosts[0]))
        self._tables: dict[tuple[str, str], sa.Table] = {}

    def table(self, name: str, table: str) -> sa.Table | None:
        """A table as the database *name* has it; None where there is none."""
        if name not in self._engines or table not in tables.metadata.tables:
            return None
        if (name, table) not in self._tables:
            try:
                found = sa.Table(table, sa.MetaData(), autoload_with=self._engines[name])
            except sa.exc.NoSuchTableError:
                return None
            self._tables[name, table] = found
        return self._tables[name, table]

    @contextlib.contextmanager
    def written(self, name: str, table: sa.Table, values: Mapping[str, Any]) -> Iterator[bool]:
        """Within it the first row has *values*; whether the database took them."""
        engine = self._engines[name]
        with engine.begin() as connection:
            (key,) = table.primary_key
            saved = connection.execute(sa.select(table).order_by(key)).first()
        assert saved is not None, table.name
        row = key == getattr(saved, key.name)
        try:
            with engine.begin() as connection:
                connection.execute(sa.update(table).where(row).values(**values))
        except sa.exc.DBAPIError:
            yield False
            return
        try:
            yield True
        finally:
            with engine.begin() as connection:
                connection.execute(sa.update(table).where(row).values(**saved._mapping))

    def close(self) -> None:
        """Let go of the databases."""
        for each in self._engines.values():
            each.dispose()
