"""Layouts of Nova's databases, and statements fitted to the columns that one has.

Queries are written against :mod:`scheduler.db.tables`, the columns of Nova's newest release.  What
an older layout lacks reads as NULL and is left out of what is written (reference page database,
sections 2 to 4 and 10).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.sql import visitors

from scheduler.db import tables

Statement = TypeVar("Statement", bound=sa.Executable)

#: Where Nova's own tools note how far a database is, today and before 2021: table and column.
NOVA_VERSION_TABLES = {"alembic_version": "version_num", "migrate_version": "version"}
#: The tables of a cell's database that are used here, and those of the API database.
CELL_TABLES = (
    *("compute_nodes", "services", "instances", "instance_extra", "instance_faults"),
    *("instance_metadata", "instance_system_metadata", "block_device_mapping"),
)
API_TABLES = (
    *("aggregates", "aggregate_hosts", "aggregate_metadata", "instance_groups"),
    *("instance_group_member", "instance_group_policy", "flavors", "flavor_extra_specs"),
    *("flavor_projects", "request_specs", "build_requests", "cell_mappings"),
    *("instance_mappings", "host_mappings"),
)
#: Without these there is nothing that a scheduler could read.
NEEDED_TABLES = ("compute_nodes", "services", "instances")
#: The execution option of connections that holds the layout of their database.
OPTION = "nova_layout"


@dataclass(frozen=True)
class Layout:
    """Tables and columns of one database.

    *version_table* is where Nova's own tool notes the version, None for a database of ours.
    *absent* maps the tables that are there to their columns that are not.
    """

    version_table: str | None = None
    present: frozenset[str] = frozenset(tables.metadata.tables)
    absent: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Columns that the newest release has no more: the soft deletion of tables that moved.
    soft_deleted: frozenset[str] = frozenset()

    @property
    def is_nova(self) -> bool:
        return self.version_table is not None

    def has(self, table: str, column: str | None = None) -> bool:
        return table in self.present and column not in self.absent.get(table, ())

    def missing(self, of_tables: Iterable[str]) -> list[str]:
        """Missing tables and columns of these tables: ``table`` or ``table.column``, sorted."""
        found: list[str] = []
        for table in of_tables:
            if table not in self.present:
                found.append(table)
            found += [f"{table}.{column}" for column in self.absent.get(table, ())]
        return sorted(found)

    def writable(self, table: sa.Table, values: Mapping[str, Any]) -> dict[str, Any]:
        """The *values* (by column) for which *table* has the column."""
        absent = self.absent.get(table.name, ())
        return {name: value for name, value in values.items() if name not in absent}

    def living(self, table: sa.Table) -> list[sa.ColumnElement[bool]]:
        """Criteria of living rows; of those, too, where *table* has a deletion that ours lacks."""
        if "deleted" in table.c:
            return [table.c.deleted == 0]
        if table.name not in self.soft_deleted:
            return []
        return [sa.literal_column(f"{table.name}.deleted", sa.Integer) == 0]

    def fitted(self, statement: Statement, dialect_name: str) -> Statement:
        """*statement* with NULL for absent columns; before release 16 services name hosts."""
        if not self.absent:
            return statement
        found: Any = statement
        if isinstance(found, sa.Select):
            # A whole table among the columns stands for all of them.
            columns = found.selected_columns
            found = found.with_only_columns(*columns, maintain_column_froms=True)

        def replace(element: Any, **_: Any) -> Any:
            if not isinstance(element, sa.Column) or element.table is None:
                return None
            is_absent = element.name in self.absent.get(element.table.name, ())
            if element is tables.compute_nodes.c.host and not self.has("compute_nodes", "mapped"):
                return _host_of_node(is_absent).label(element.name)
            return _null(element, dialect_name).label(element.name) if is_absent else None

        return visitors.replacement_traverse(found, {}, replace)


COMPLETE = Layout()
"""Everything: what this project's own migrations make."""


def layout_of(connection: sa.Connection) -> Layout:
    return connection.get_execution_options().get(OPTION, COMPLETE)


def detect(connection: sa.Connection) -> Layout | None:
    """The layout of the database; None where it has no tables yet."""
    inspector = sa.inspect(connection)
    names = set(inspector.get_table_names())
    version_table = next((name for name in NOVA_VERSION_TABLES if name in names), None)
    if version_table is None:
        return COMPLETE if names & tables.metadata.tables.keys() else None
    present = names & tables.metadata.tables.keys()
    absent, soft_deleted = {}, set()
    for name in present:
        columns = {column["name"] for column in inspector.get_columns(name)}
        known = tables.metadata.tables[name].c
        lacking = frozenset(known.keys()) - columns
        if lacking:
            absent[name] = lacking
        if "deleted" in columns and "deleted" not in known:
            soft_deleted.add(name)
    return Layout(version_table, frozenset(present), absent, frozenset(soft_deleted))


def listen(engine: sa.Engine, layout: Layout) -> None:
    """Fit everything that is executed on *engine* to *layout*."""
    if not layout.absent:
        return

    def fit(
        _connection: Any, statement: Any, parameters: Any, one: Any, _options: Any
    ) -> tuple[Any, Any, Any]:
        return layout.fitted(statement, engine.dialect.name), parameters, one

    sa.event.listen(engine, "before_execute", fit, retval=True)


def _host_of_node(is_absent: bool) -> sa.ColumnElement[Any]:
    """The host of a compute node by its service, unless its own row says it."""
    nodes, service = tables.compute_nodes, tables.services.alias("service_of_node")
    by_service = sa.select(service.c.host).where(service.c.id == nodes.c.service_id)
    found = by_service.correlate(nodes).scalar_subquery()
    return found if is_absent else sa.func.coalesce(nodes.c.host, found)


def _null(column: sa.Column[Any], dialect_name: str) -> sa.ColumnElement[Any]:
    typed = sa.cast if dialect_name == "postgresql" else sa.type_coerce  # guesses none
    return typed(sa.null(), column.type)
