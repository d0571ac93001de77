"""The kinds of input: where each begins, how it is changed, and what it is given to."""

from __future__ import annotations

import copy
import json
import pathlib
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from scheduler import errors, idempotency
from scheduler.conf import startup
from scheduler.db.tables import compute_nodes
from scheduler.hosts import rows as host_rows
from scheduler.rpc.messages import ObjectSerializer
from tests.fuzz import mutations, rows, samples, verdicts
from tests.fuzz.stores import NOVA, OWN
from tests.fuzz.tally import Tally
from tests.fuzz.verdicts import ACCEPTED, Verdict
from tests.fuzz.world import HOSTS, World

SEED = 20161006
SERIALIZER = ObjectSerializer()
RATIOS = host_rows.Ratios(16.0, 1.5, 1.0)
EXPLAIN = samples.introspection()["ask-explain"]
REQUEST = samples.messages()["select_destinations-simple.request"]


@dataclass(frozen=True)
class Target:
    """One kind of input, as bytes: *seeds* are its corpus, *try_out* its real entry point."""

    name: str
    seeds: Callable[[], Iterable[bytes]]
    try_out: Callable[[World, bytes], Verdict]
    #: How many inputs ``make test`` gives it; for ``make fuzz`` see targets_listed.
    few: int
    mutate: Callable[[bytes, int, int], bytes] = mutations.mutated_text
    options: dict[str, Any] = field(default_factory=lambda: {"driver": "caching_scheduler"})


def as_texts(documents: Iterable[Any]) -> list[bytes]:
    """The JSON texts of *documents*."""
    return [json.dumps(each).encode() for each in documents]


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


def with_spec(change: Callable[[dict[str, Any], Any], None]) -> Callable[[World, bytes], Verdict]:
    """The good request with one part of its spec replaced by the input."""

    def try_out(world: World, data: bytes) -> Verdict:
        request = copy.deepcopy(REQUEST)
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = data.decode("utf-8", "replace")
        change(request["args"]["spec_obj"][samples.DATA], value)
        return verdicts.of_answer(world.serve(request))

    return try_out


def hints(spec: dict[str, Any], value: Any) -> None:
    spec["scheduler_hints"] = value


def query(spec: dict[str, Any], value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    spec["scheduler_hints"] = {"query": [text]}


def extra_specs(spec: dict[str, Any], value: Any) -> None:
    spec["flavor"][samples.DATA]["extra_specs"] = value


def image_properties(spec: dict[str, Any], value: Any) -> None:
    spec["image"][samples.DATA]["properties"][samples.DATA] = value


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
    return timed(kind, began, violation)


def place(world: World, data: bytes) -> Verdict:
    """Columns of a compute node's row: read, put into the table, and decided on."""
    try:
        columns = json.loads(data)
    except (ValueError, RecursionError):
        return Verdict("no JSON", 0.0)
    if not isinstance(columns, dict):
        return Verdict("no columns", 0.0)
    manager = world.manager.driver.host_manager
    row = SimpleNamespace(**{**dict.fromkeys(compute_nodes.c.keys()), **GOOD_ROW})
    for name, value in columns.items():
        if name in compute_nodes.c and name not in KEPT:
            setattr(row, name, as_stored(name, value))
    began = time.process_time()
    with manager.lock:
        manager.table.put(
            host_rows.key(row), manager.decode(row, RATIOS, world.conf.scheduler.cell_uuid)
        )
        manager.table.set_service("fuzzed", {"host": "fuzzed", "disabled": False}, manager.clock())
    for asked in (REQUEST, *RICH):
        verdict = verdicts.of_answer(world.serve(asked))
        if verdict.violation:
            return verdict
    return timed(verdict.kind, began)


KEPT = frozenset({"id", "uuid", "host", "hypervisor_hostname", "deleted", "mapped"})
GOOD_ROW = {
    "id": 99, "uuid": "99", "host": "fuzzed", "hypervisor_hostname": "fuzzed", "deleted": 0,
    "vcpus": 64, "memory_mb": 10**6, "local_gb": 10**5, "free_disk_gb": 10**5, "vcpus_used": 0,
    "free_ram_mb": 10**6, "local_gb_used": 0, "memory_mb_used": 0, "hypervisor_type": "QEMU",
    "hypervisor_version": 2012000, "supported_instances": '[["x86_64", "kvm", "hvm"]]',
}  # fmt: skip
RICH = (samples.messages()["select_destinations-rich.request"],)


def as_stored(name: str, value: Any) -> Any:
    """*value* as the column *name* would hold it: a database keeps the types apart."""
    wanted = compute_nodes.c[name].type.python_type
    if value is None or wanted is str:
        return value if isinstance(value, str | None) else json.dumps(value)
    try:
        return wanted(value) if abs(wanted(value)) < 2**63 else None
    except (TypeError, ValueError, OverflowError):
        return None


def config(world: World, data: bytes) -> Verdict:
    """Any bytes as a configuration file, read as a start or a reload reads it."""
    path = pathlib.Path(world.folder) / "fuzzed.conf"
    path.write_bytes(data)
    began = time.process_time()
    kind, violation = ACCEPTED, None
    try:
        startup.read_again(startup.Source(["--config-file", str(path)], "nova-scheduler"))
    except errors.ConfigurationError as error:
        kind = "ConfigurationError"
        if not error.kwargs.get("option"):
            violation = f"names no option: {error}"
    return timed(kind, began, violation)


def timed(kind: str, began: float, violation: str | None = None) -> Verdict:
    """The verdict on what *began* then."""
    seconds = time.process_time() - began
    if seconds > verdicts.most_seconds():
        violation = violation or f"{seconds:.2f} s"
    return Verdict(kind, seconds, violation)


def raw(data: bytes, max_size: int, seed: int) -> bytes:
    """Bytes that are changed as bytes, or as the JSON text in them."""
    if seed % 2:
        return mutations.mutated_text(data, max_size, seed)
    return mutations.broken(data, random.Random(seed))[:max_size]


def legacy_messages() -> list[bytes]:
    """Requests of before there were objects."""
    found = samples.messages()
    return as_texts(each for name, each in found.items() if "havana" in name or "v4.0" in name)


def requests() -> list[bytes]:
    """Requests for a host, of every version."""
    found = samples.messages()
    return as_texts(each for name, each in found.items() if name.startswith("select_destinations"))


TARGETS: tuple[Target, ...] = (
    Target("bodies", lambda: list(samples.bodies()), body, 300, raw),
    Target("messages", lambda: as_texts(samples.messages().values()), message, 300),
    Target("older messages", legacy_messages, message, 150),
    Target("what-if", lambda: as_texts([samples.what_if()]), message, 40),
    Target("explanations", requests, explained, 60),
    Target("objects", lambda: as_texts(samples.envelopes()), envelope, 500),
    Target("queries", lambda: [q.encode() for q in samples.QUERIES], with_spec(query), 100),
    Target("documents of hosts", lambda: as_texts(samples.places()), place, 60),
    Target("rows", lambda: rows.seeds(OWN), rows.row, 40, rows.mutated),
    Target(
        "rows of Nova's",
        lambda: rows.seeds(NOVA),
        rows.row,
        24,
        rows.mutated,
        options={"driver": "caching_scheduler", "layout": NOVA},
    ),
    Target("configuration files", lambda: list(samples.files()), config, 15, raw),
)


def tried_out(world: World, target: Target, inputs: int = 0, seed: int = SEED) -> Tally:
    """Give *target* so many inputs by chance, or as many as ``make test`` does: always the same."""
    chance, tally = random.Random(seed), Tally()
    seeds = list(target.seeds())
    for _ in range(inputs or target.few):
        data = chance.choice(seeds)
        for _ in range(chance.choice((1, 1, 2))):
            data = target.mutate(data, 1 << 16, chance.getrandbits(31))
        tally.count(data, lambda data=data: target.try_out(world, data))
    return tally
