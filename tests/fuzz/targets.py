"""The kinds of input: where each begins, how it is changed, and what it is given to.

One field of a good message is changed at a time, too: if that is refused, the refusal names it.
Rows may be half-written, or say what nobody could mean, in every table that is read.
"""

import datetime
import json
import pathlib
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from scheduler import errors, idempotency
from scheduler.conf import check, startup
from scheduler.db import tables
from scheduler.rpc.context import ObjectSerializer
from tests.fuzz import mutations, samples, verdicts
from tests.fuzz.one import BY_CHANCE, ONE_FIELD
from tests.fuzz.samples import DATA
from tests.fuzz.verdicts import ACCEPTED, Tally, Verdict
from tests.fuzz.world import HOSTS, NOVA, OWN, World

SEED = 20161006
SERIALIZER = ObjectSerializer()
EXPLAIN = samples.introspection()["ask-explain"]
REQUEST, RICH = (
    samples.messages()[f"select_destinations-{each}.request"] for each in ("simple", "rich")
)
NOT_LOOKED_AT = ("_msg_id", "_reply_q", "_unique_id", "oslo.version", "ctxt")
"""What the library takes for itself, and does not tell of."""
ANY_ZONE = mutations.with_value(REQUEST, ("args", "spec_obj", DATA, "availability_zone"), None)
"""For a host of any zone: a row may say that there is none."""
AGGREGATES = ("aggregates", "aggregate_hosts", "aggregate_metadata")
FLEET = ("compute_nodes", "services", "instances", "instance_system_metadata")
READ = {
    OWN: {"main": (*FLEET, *AGGREGATES, "changes")},
    NOVA: {"api": (*AGGREGATES, "cell_mappings"), "a": FLEET},
}
"""By layout and database."""
HINTS, IMAGE = "scheduler_hints", ("image", DATA, "properties", DATA)
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


@dataclass(frozen=True)
class Target:
    """One kind of input, as bytes: *seeds* are its corpus, *try_out* its real entry point."""

    name: str
    seeds: tuple[Any, ...] | Callable[[], Iterable[Any]]
    try_out: Callable[[World, bytes], Verdict]
    #: How many inputs ``make test`` gives it, and ``make fuzz``.
    few: int
    many: int
    mutate: Callable[[bytes, int, int], bytes] = mutations.mutated_text
    layout: str = OWN
    many_by_chance: int = 0
    """How many ``make fuzz`` gives it besides, without looking at what ways they take."""

    def corpus(self) -> list[bytes]:
        """The seeds: bytes, texts, or documents as JSON."""
        seeds = self.seeds if isinstance(self.seeds, tuple) else self.seeds()
        texts = (each if isinstance(each, bytes | str) else json.dumps(each) for each in seeds)
        return [each if isinstance(each, bytes) else each.encode() for each in texts]


def body(world: World, data: bytes) -> Verdict:
    """Any bytes as the body of a message."""
    return verdicts.of_answer(world.receive(data))


def message(world: World, data: bytes) -> Verdict:
    """A message that is well-formed JSON, if possible an object."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return body(world, data)
    if not isinstance(document, dict):
        return body(world, data)
    return verdicts.of_answer(world.serve(document))


def explained(world: World, data: bytes) -> Verdict:
    """A request that is decided, or not, and then asked about: why, and why not that host."""
    verdict = message(world, data)
    if verdict.violation:
        return verdict
    name = world.latest_request_id
    for host in HOSTS:
        asked = {**EXPLAIN, "args": {"name": name, "on_host": host}}
        told = verdicts.of_answer(world.serve(asked))
        if told.violation:
            return told
    return verdict


def with_spec(*path: str, is_query: bool = False) -> Callable[[World, bytes], Verdict]:
    """The good request with the input, or hints that query for it, at *path* in its spec."""

    def try_out(world: World, data: bytes) -> Verdict:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = data.decode("utf-8", "replace")
        if is_query:
            value = {"query": [value if isinstance(value, str) else json.dumps(value)]}
        place = ("args", "spec_obj", DATA, *path)
        return verdicts.of_answer(world.serve(mutations.with_value(REQUEST, place, value)))

    return try_out


def envelope(world: World, data: bytes) -> Verdict:
    """An object's envelope: read, told as plain data, and written again."""
    del world
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return Verdict("no JSON", 0.0)
    began = time.process_time()
    kind, violation = ACCEPTED, None
    try:
        made = SERIALIZER.deserialize_entity(None, document)
        json.dumps(SERIALIZER.serialize_entity(None, made))
        idempotency.fingerprint([made])
    except errors.NovaException as error:
        kind = type(error).__name__
        if kind not in verdicts.BY_NAME:
            violation = f"{kind}: {error}"
    return timed(kind, time.process_time() - began, violation)


def config(world: World, data: bytes) -> Verdict:
    """Any bytes as a configuration file, read as a start or a reload reads it."""
    path = pathlib.Path(world.folder) / "fuzzed.conf"
    path.write_bytes(data)
    began = time.process_time()
    kind, violation = ACCEPTED, None
    try:
        check.validate(startup.fill(startup.Source(["--config-file", str(path)], "nova-scheduler")))
    except errors.ConfigurationError as error:
        kind = "ConfigurationError"
        if not error.kwargs.get("option"):
            violation = f"names no option: {error}"
    return timed(kind, time.process_time() - began, violation)


def rows(layout: str) -> Iterator[dict[str, Any]]:
    """One for each table: all columns; and documents of hosts."""
    for name, several in READ[layout].items():
        for table in several:
            documents = samples.places() if table == "compute_nodes" else ()
            for columns in (_examples(table), *documents):
                yield {"database": name, "table": table, "columns": columns}


def mutated_row(data: bytes, max_size: int, seed: int) -> bytes:
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
            rich, verdict = (verdicts.of_answer(world.serve(each)) for each in (RICH, ANY_ZONE))
    seconds = time.process_time() - began
    hosts.refresh_everything()
    if not stored:
        return Verdict(NOT_STORED, seconds)
    violation = rich.violation or verdict.violation
    if verdict.kind != ACCEPTED:
        violation = violation or f"{verdict.kind}, although other hosts have room"
    return timed(verdict.kind, seconds, violation)


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


def timed(kind: str, seconds: float, violation: str | None) -> Verdict:
    """The verdict on what took so many *seconds*."""
    if seconds > verdicts.most_seconds():
        violation = violation or f"{seconds:.2f} s"
    return Verdict(kind, seconds, violation)


def changes(every: int, first: int = 0) -> Iterator[tuple[dict[str, Any], mutations.Path]]:
    """Every *every*-th of all changes, from the *first* on: the message, and where it differs."""
    number = first
    for message in (*samples.messages().values(), samples.what_if()):
        for path, _value in mutations.parts(message):
            if not path or path[0] in NOT_LOOKED_AT:
                continue
            for value in mutations.VALUES:
                number += 1
                if number % every == 0:
                    yield mutations.with_value(message, path, value), path


def try_field(world: World, message: dict[str, Any], path: mutations.Path) -> Verdict:
    """Send *message*, which is wrong at *path* if it is wrong at all."""
    names = mutations.names_of(message, path)
    return verdicts.of_answer(world.serve(message), names)


def shown(message: dict[str, Any], path: mutations.Path) -> bytes:
    """What was changed, for people."""
    return f"{message.get('method')} {path}: {json.dumps(mutations.at(message, path))}".encode(
        "utf-8", "replace"
    )


def raw(data: bytes, max_size: int, seed: int) -> bytes:
    """Bytes that are changed as bytes, or as the JSON text in them."""
    if seed % 2:
        return mutations.mutated_text(data, max_size, seed)
    return mutations.broken(data, random.Random(seed))[:max_size]


def messages(*marks: str) -> list[Any]:
    """The recorded messages of whose names one of *marks* is a part; all, without any."""
    found = samples.messages()
    return [found[name] for name in found if not marks or any(mark in name for mark in marks)]


TARGETS: tuple[Target, ...] = (
    Target("bodies", samples.bodies, body, 300, 60_000, raw, many_by_chance=390_000),
    Target("messages", messages, message, 300, 20_000),
    Target("older messages", lambda: messages("havana", "v4.0"), message, 150, 8_000),
    Target("what-if", lambda: [samples.what_if()], message, 40, 2_000),
    Target("explanations", lambda: messages("select_destinations"), explained, 60, 1_500),
    Target("objects", samples.envelopes, envelope, 500, 30_000, many_by_chance=431_000),
    Target("queries", samples.QUERIES, with_spec(HINTS, is_query=True), 100, 8_000),
    Target("hints", samples.HINTS, with_spec(HINTS), 60, 3_000),
    Target("extra specs", samples.EXTRA_SPECS, with_spec("flavor", DATA, "extra_specs"), 60, 3_000),
    Target("image properties", samples.IMAGE_PROPERTIES, with_spec(*IMAGE), 60, 3_000),
    Target("rows", lambda: rows(OWN), row, 60, 2_000, mutated_row),
    Target("rows of Nova's", lambda: rows(NOVA), row, 24, 300, mutated_row, layout=NOVA),
    Target("configuration files", samples.files, config, 15, 2_000, raw),
)


def listed() -> dict[str, int]:
    """All targets of ``make fuzz``, and how many inputs each gets."""
    chosen = {each.name: each.many for each in TARGETS} | {ONE_FIELD: 40_000}
    random_ = {each.name + BY_CHANCE: each.many_by_chance for each in TARGETS}
    return {name: inputs for name, inputs in {**random_, **chosen}.items() if inputs}


def tried_out(world: World, target: Target, inputs: int = 0, seed: int = SEED) -> Tally:
    """Give *target* so many inputs by chance, or as many as ``make test`` does: always the same."""
    chance, tally = random.Random(seed), Tally()
    seeds = target.corpus()
    for _ in range(inputs or target.few):
        data = chance.choice(seeds)
        for _ in range(chance.choice((1, 1, 2))):
            data = target.mutate(data, 1 << 16, chance.getrandbits(31))
        tally.count(data, lambda data=data: target.try_out(world, data))
    return tally


def changed_fields(world: World, inputs: int) -> Tally:
    """Change one field after the other, evenly among all changes if there are more than that."""
    every, tally = max(1, sum(1 for _ in changes(1)) // inputs), Tally()
    for message, path in changes(every):
        data = shown(message, path)
        tally.count(data, lambda m=message, p=path: try_field(world, m, p))
    return tally


def named(name: str) -> Target:
    return next(each for each in TARGETS if each.name == name)
