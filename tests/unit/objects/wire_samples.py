"""The captured messages, and how to compare envelopes with them."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

from scheduler import objects
from scheduler.objects import registry

FOLDER = pathlib.Path(__file__).parents[2] / "data" / "wire"
SETS = {
    *("physnets", "cpuset", "pcpuset", "pinned_cpus", "forbidden_aggregates", "required_traits"),
    *("root_required", registry.CHANGES_KEY),
}


def load(name: str) -> Any:
    """One sample: the part of it that is a message, or all of it."""
    document = json.loads((FOLDER / f"{name}.json").read_text())
    return document.get("message", document)


def names(pattern: str = "*") -> list[str]:
    return sorted(path.stem for path in FOLDER.glob(f"{pattern}.json"))


def comparable(value: Any, name: str = "") -> Any:
    """*value* with the elements of sets, ``changes`` among them, in order."""
    if isinstance(value, dict):
        return {k: comparable(v, k) for k, v in value.items()}
    if isinstance(value, list):
        items = [comparable(item) for item in value]
        return sorted(items) if name in SETS else items
    return value


def without_changes(value: Any) -> Any:
    """*value*, comparable, without what its sender said had changed."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k != registry.CHANGES_KEY}
        return {k: without_changes(v) for k, v in comparable(kept).items()}
    return [without_changes(item) for item in value] if isinstance(value, list) else value


def envelopes(value: Any) -> Iterator[dict[str, Any]]:
    """Every envelope inside *value*, outer ones first."""
    if isinstance(value, dict):
        if registry.NAME_KEY in value:
            yield value
        for item in value.values():
            yield from envelopes(item)
    elif isinstance(value, list):
        for item in value:
            yield from envelopes(item)


def decoded(value: Any) -> Any:
    """*value* with every envelope decoded, as an RPC serializer hands it on."""
    if isinstance(value, dict):
        if registry.NAME_KEY in value:
            return objects.from_primitive(value)
        return {key: decoded(item) for key, item in value.items()}
    return [decoded(item) for item in value] if isinstance(value, list) else value


def envelope(name: str, version: str | None = None, **data: Any) -> dict[str, Any]:
    return {
        registry.NAME_KEY: name,
        registry.NAMESPACE_KEY: registry.NAMESPACE,
        registry.VERSION_KEY: version or getattr(objects, name).VERSION,
        registry.DATA_KEY: data,
    }


def rich() -> objects.RequestSpec:
    """A captured request that has everything."""
    spec: objects.RequestSpec = objects.from_primitive(
        load("select_destinations-rich.request")["args"]["spec_obj"]
    )
    return spec
