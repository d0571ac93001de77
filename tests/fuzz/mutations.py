"""Values that go wrong, and changes of a document that may contain them."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
"""Keys and places that lead from a document to a part of it."""

MARK = "nova_object."


def deep(levels: int, inner: Any = 1) -> Any:
    for _ in range(levels):
        inner = [inner]
    return inner


def deep_dict(levels: int) -> Any:
    inner: Any = {}
    for _ in range(levels):
        inner = {"k": inner}
    return inner


SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 2**64, 10**30, 10**400, 0.5, -0.0, 1e308,
    float("inf"), float("-inf"), float("nan"), "", " ", "0", "-1", "1e9", "nan", "x", "None",
    "\x00", "\ud800", "é", "\u202e", "a\nb", "../../etc/passwd", "%s%(x)s{0}", "x" * 5000,
    "9" * 5000,
    "2026-13-45T99:99:99Z", "1.2.3", "<=9.9", "$free_ram_mb", "cmp1",
    "aaaaaaaa-0000-4000-a000-000000000001",
)  # fmt: skip
CONTAINERS: tuple[Any, ...] = (
    [], {}, [None], [[]], [{}], {"": None}, {"x": {"y": []}}, [1, "a", None], ["cmp1", "cmp1"],
    {"nova_object.name": "Flavor"},
    {"nova_object.name": "Nothing", "nova_object.namespace": "nova"},
    {"nova_object.name": [], "nova_object.namespace": {}}, deep(30), deep(200), deep_dict(90),
    ["x"] * 300, {str(number): number for number in range(300)},
)  # fmt: skip
VALUES = (*SCALARS, *CONTAINERS)


def parts(document: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, document
    if isinstance(document, dict):
        for key, value in document.items():
            yield from parts(value, (*path, key))
    elif isinstance(document, list):
        for place, value in enumerate(document):
            yield from parts(value, (*path, place))


def at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def with_value(document: Any, path: Path, value: Any) -> Any:
    """A copy of *document* that shares all but what is on the *path*, and has *value* there."""
    if not path:
        return value
    twin = copy.copy(document)
    twin[path[0]] = with_value(document[path[0]], path[1:], value)
    return twin


def without(document: Any, path: Path) -> Any:
    """A copy of *document* that lacks what *path* leads to."""
    holder = copy.copy(at(document, path[:-1]))
    del holder[path[-1]]
    return with_value(document, path[:-1], holder)


def is_deep(value: Any, levels: int = 20) -> bool:
    """Whether *value* begins with so many levels of lists or dicts."""
    for _ in range(levels):
        if not isinstance(value, list | dict) or len(value) != 1:
            return False
        value = value[0] if isinstance(value, list) else next(iter(value.values()))
    return True


def names_of(document: Any, path: Path) -> set[str]:
    """What a refusal of the value at *path* may call it by: its name, or its object's class.

    A dict that was put there may also be refused for what is in it.
    """
    value = at(document, path)
    names = {str(key) for key in value} if isinstance(value, dict) else set()
    if is_deep(value):  # which is told of what holds it
        names |= {step.removeprefix("_context_") for step in path if isinstance(step, str)}
    for length in range(len(path), 0, -1):
        step = path[length - 1]
        if isinstance(step, int):
            continue
        if step.startswith(MARK):
            found = at(document, path[: length - 1])
            names |= {step, str(found.get(f"{MARK}name"))}
            continue
        return names | {step.removeprefix("_context_"), *OTHER_NAMES.get(step, ())}
    return names


OTHER_NAMES = {
    "args": ("missing",),
    "instance_properties": ("instance_uuid",),
    "instance_type": ("flavor",),
    "aggregates": ("aggregate",),
    "like": ("host",),
    "availability_zone": ("zone",),
    "namespace": ("version",),  # of which the library says that there is none of this version
    "request_spec": ("RequestSpec.flavor",),
    "settings": ("--set",),
    "enable": ("--enable",),
    "disable": ("--disable",),
    "add_hosts": ("--add-hosts",),
    "without_hosts": ("--without-host",),
}


def mutated(document: Any, chance: random.Random) -> Any:
    """*document* with one to three changes."""
    document = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        document = _changed(document, chance)
    return document


def _changed(document: Any, chance: random.Random) -> Any:
    holder, key = None, None
    value = document
    while isinstance(value, dict | list) and value and (holder is None or chance.random() < 0.8):
        holder = value
        key = (
            chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        )
        value = holder[key]
    if holder is None:
        return copy.deepcopy(chance.choice(VALUES))
    kind = chance.choice(("replace", "replace", "vary", "vary", "drop", "double", "add"))
    if kind == "replace":
        holder[key] = copy.deepcopy(chance.choice(VALUES))
    elif kind == "vary":
        _vary(holder, key, chance)
    elif kind == "drop":
        del holder[key]
    elif isinstance(holder, list):
        added = copy.deepcopy(value if kind == "double" else chance.choice(VALUES))
        place = chance.randrange(len(holder) + 1)
        holder[place:place] = [added] * chance.choice((1, 2, 50))
    elif kind == "double":
        holder[f"{key}{chance.choice(('_', ':', ' ', '2'))}"] = copy.deepcopy(value)
    else:
        names = ("", "x", "self", "context", "id", f"{MARK}name", key)
        holder[chance.choice(names)] = copy.deepcopy(chance.choice(VALUES))
    return document


def _vary(holder: Any, key: Any, chance: random.Random) -> None:
    """Something near the value, of the same type."""
    value = holder[key]
    if isinstance(value, bool) or value is None:
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = value + chance.choice((-1, 1, 7, 10**6, -(10**9))) * chance.choice((1, 1, 3))
    elif isinstance(value, float):
        holder[key] = value * chance.choice((-1, 0, 0.5, 1e10, 1e300))
    elif isinstance(value, str):
        holder[key] = _text(value, chance)
    else:
        holder[key] = [value]


def _text(value: str, chance: random.Random) -> str:
    place = chance.randrange(len(value) + 1)
    inner = chance.choice(
        ("", " ", "\x00", "{", "[", '"', ",", "=", "%", "é", "\ud800", "9", "<or>")
    )
    cut = chance.choice((0, 0, 1, 5))
    return (value[:place] + inner + value[place + cut :]) * chance.choice((1, 1, 1, 2))


def mutated_text(data: bytes, max_size: int, seed: int) -> bytes:
    """A custom mutator for JSON texts: another document, or now and then broken bytes."""
    chance = random.Random(seed)
    try:
        if chance.random() < 0.05:
            raise ValueError("broken on purpose")
        text = json.dumps(mutated(json.loads(data), chance))
        return text.encode()[:max_size]
    except (ValueError, RecursionError):
        return broken(data, chance)[:max_size]


def broken(data: bytes, chance: random.Random) -> bytes:
    """*data* with some bytes changed, missing, doubled or from elsewhere."""
    if not data:
        return bytes([chance.randrange(256)])
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        place = chance.randrange(len(changed) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            changed[place : place + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del changed[place : place + chance.choice((1, 2, 16))]
        elif kind == 2:
            changed[place:place] = chance.choice(
                (b"{", b"[", b'"', b"\xff", b"\\", b"[" * 50, b"0" * 30)
            )
        else:
            begin = chance.randrange(len(changed) + 1)
            changed[place:place] = changed[begin : begin + 16]
    return bytes(changed)
