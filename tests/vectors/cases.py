"""Recorded placements: reading the cases, and building what each one starts from.

A case states configuration, database rows and a request, and what Nova decided: the hosts that
pass each filter, the limits, the weights, the choice.  ``tests/data/vectors/FORMAT.md`` describes
the files.
"""

from __future__ import annotations

import datetime
import gzip
import json
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from oslo_config import cfg

from scheduler import conf as options
from scheduler import objects
from scheduler.db import tables
from scheduler.db.fleet import FleetChanges
from scheduler.filters import all_filters
from scheduler.hosts.books import Books
from scheduler.hosts.rows import Ratios
from scheduler.hosts.table import HostTable
from scheduler.hosts.updates import TableUpdater
from scheduler.weights import all_weighers

FOLDER = pathlib.Path(__file__).parent.parent / "data" / "vectors"
ALL_WEIGHERS = "all_weighers"
CELL = "00000000-0000-4000-8fff-000000000000"
_CREATED_AT = "2026-01-01T00:00:00Z"
_RATIOS = ("cpu", "ram", "disk")
#: Ratios of rows that hold none, in Newton (format page, section 7, row 10).
_NEWTON_RATIOS = {"cpu": 16.0, "ram": 1.5, "disk": 1.0}


@dataclass(frozen=True)
class Case:
    """One line of a suite."""

    name: str
    content: dict[str, Any]

    @property
    def expected(self) -> dict[str, Any]:
        """What Nova did."""
        return self.content["expect"]

    @property
    def newton(self) -> bool:
        """Whether it was recorded on Newton alone."""
        return self.content["semantics"] == "newton"

    @property
    def weighers(self) -> list[str]:
        """Class names of the weighers, or ``all_weighers``."""
        return [_last(path) for path in self._filter_scheduler["weight_classes"]]

    @property
    def _filter_scheduler(self) -> dict[str, Any]:
        return self.content["config"]["filter_scheduler"]

    def is_offered(self) -> bool:
        """Whether every part that the case uses ships here; of pairs, today's behaviour does."""
        filters = {cls.__name__ for cls in all_filters()}
        weighers = {cls.__name__ for cls in all_weighers()} | {ALL_WEIGHERS}
        return (
            not self.name.endswith("@newton")
            and filters.issuperset(self._filter_scheduler["enabled_filters"])
            and weighers.issuperset(self.weighers)
        )

    def conf(self) -> cfg.ConfigOpts:
        """The case's configuration; what it leaves out has the default of its release."""
        conf = cfg.ConfigOpts()
        options.register_all(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        if self.newton:
            for name, ratio in _NEWTON_RATIOS.items():
                conf.set_override(f"initial_{name}_allocation_ratio", ratio)
        for group, values in self.content["config"].items():
            for name, value in values.items():
                conf.set_override(name, value, group=None if group == "DEFAULT" else group)
        return conf

    def now(self) -> float:
        """The clock, in seconds since the epoch."""
        return _moment(self.content["now"]).replace(tzinfo=datetime.UTC).timestamp()

    def request(self) -> objects.RequestSpec:
        """The request, decoded as it arrives."""
        if "legacy" in self.content:
            legacy = self.content["legacy"]
            return objects.RequestSpec.from_primitives(
                legacy["request_spec"], legacy["filter_properties"]
            )
        return objects.from_primitive(self.content["request"])

    def books(self, conf: cfg.ConfigOpts) -> Books:
        """A host table with the case's fleet, and its books."""
        books = Books(HostTable())
        TableUpdater(books, Ratios.from_conf(conf), CELL).apply(self._fleet(), self.now())
        for cell in self.content["fleet"].get("cells", ()):
            for host in cell["hosts"]:
                for row in books.table.row_numbers([host]):
                    key = (host, books.table.value(row, "nodename"))
                    books.table.put(key, {"cell_uuid": cell["uuid"]})
        return books

    def _fleet(self) -> FleetChanges:
        fleet = self.content["fleet"]
        services = [_row(tables.services, each) for each in fleet["services"]]
        return FleetChanges(
            full=True,
            read_at=_moment(self.content["now"]),
            nodes=[_row(tables.compute_nodes, each) for each in fleet["compute_nodes"]],
            instances=[_row(tables.instances, each) for each in fleet["instances"]],
            services=services,
            heartbeats=(),
            flagged={s.host: (s.disabled, s.forced_down) for s in services},
            aggregates=[objects.Aggregate(**each) for each in fleet["aggregates"]],
        )


def load(suite: str) -> Iterator[Case]:
    """The cases of one suite."""
    with gzip.open(FOLDER / f"{suite}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            content = json.loads(line)
            yield Case(content["name"], content)


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None)


def _row(table: Any, values: dict[str, Any]) -> Any:
    """A row as a query gives it: columns as attributes, times as naive UTC."""
    columns = {**dict.fromkeys(table.c.keys()), "deleted": 0, "created_at": _CREATED_AT, **values}
    for name in ("created_at", "updated_at", "deleted_at", "last_seen_up"):
        if columns.get(name):
            columns[name] = _moment(columns[name])
    return SimpleNamespace(**columns, _mapping=columns)
