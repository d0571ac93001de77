"""Rows that are half-written, or say what nobody could mean: in every table that is read."""

from __future__ import annotations

import datetime
import json
import random
import time
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from scheduler.db import tables
from tests.fuzz import mutations, verdicts
from tests.fuzz.samples import DATA, messages
from tests.fuzz.stores import NOVA, OWN
from tests.fuzz.verdicts import ACCEPTED, Verdict
from tests.fuzz.world import World

REQUEST = mutations.with_value(
    messages()["select_destinations-simple.request"],
    ("args", "spec_obj", DATA, "availability_zone"),
    None,
)
"""For a host of any zone: a row may say that there is none."""
AGGREGATES = ("aggregates", "aggregate_hosts", "aggregate_metadata")
FLEET = ("compute_nodes", "services", "instances", "instance_system_metadata")
READ = {
    OWN: {"main": (*FLEET, *AGGREGATES, "change_counters")},
    NOVA: {"api": (*AGGREGATES, "cell_mappings"), "a": FLEET},
}
"""By layout and database."""
FEW = 0.7
"""Of the columns so many are left, each time that a row is changed."""
NOT_STORED = "not stored"
BEGINNING = datetime.datetime(1, 1, 1)
EXAMPLES: dict[type, Any] = {
    int: 5,
    float: 1.5,
    bool: False,
    str: "text",
    datetime.datetime: 63_900_000_000,
}


def seeds(layout: str) -> list[bytes]:
    """One for each table: all columns."""
    return [
        json.dumps({"database": name, "table": table, "columns": _examples(table)}).encode()
        for name, several in READ[layout].items()
        for table in several
    ]


def mutated(data: bytes, max_size: int, seed: int) -> bytes:
    """The same row of the same table with other values, or fewer of them."""
    chance = random.Random(seed)
    document = json.loads(data)
    columns = document["columns"]
    few = {name: columns[name] for name in columns if chance.random() < FEW} or columns
    changed = mutations.mutated(few, chance)
    text = json.dumps({**document, "columns": changed if isinstance(changed, dict) else few})
    return text.encode() if len(text) <= max_size else data


def _examples(table: str) -> dict[str, Any]:
    columns: Iterable[sa.Column[Any]] = tables.metadata.tables[table].c
    return {c.name: EXAMPLES.get(c.type.python_type, "text") for c in columns if not c.primary_key}


def row(world: World, data: bytes) -> Verdict:
    """Columns of one row: written, read, and decided with; the other hosts serve."""
    try:
        document = json.loads(data)
        name = str(document["database"])
        table = world.stores.table(name, str(document["table"]))
        columns = document["columns"].items()
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return Verdict("no row", 0.0)
    if table is None:
        return Verdict("no table", 0.0)
    changed = {c.name for c in table.c if not c.primary_key}
    values = {key: as_stored(table.c[key], value) for key, value in columns if key in changed}
    hosts = world.manager.driver.host_manager
    began = time.process_time()
    with world.stores.written(name, table, values) as stored:
        if stored:
            hosts.refresh()
            hosts.refresh_everything()
            verdict = verdicts.of_answer(world.serve(REQUEST))
    seconds = time.process_time() - began
    hosts.refresh_everything()
    if not stored:
        return Verdict(NOT_STORED, seconds)
    violation = verdict.violation
    if verdict.kind != ACCEPTED:
        violation = violation or f"{verdict.kind}, although other hosts have room"
    if seconds > verdicts.most_seconds():
        violation = violation or f"{seconds:.2f} s"
    return Verdict(verdict.kind, seconds, violation)


def as_stored(column: sa.Column[Any], value: Any) -> Any:
    """*value* as a database would hold it in *column*: it keeps types and sizes apart."""
    if value is None:
        return None
    wanted = column.type.python_type
    if wanted is str:
        text = value if isinstance(value, str) else json.dumps(value)
        plain = text.encode("utf-8", "replace").decode().replace("\x00", "")
        return plain[: getattr(column.type, "length", None)]
    try:
        number = float(value)
        if wanted is datetime.datetime:
            return BEGINNING + datetime.timedelta(seconds=number)
        if wanted is bool:
            return bool(number)
        most = 2.0**31 if wanted is int else 1e308
        return wanted(max(-most, min(most, number)))
    except (TypeError, ValueError, OverflowError):
        return None
