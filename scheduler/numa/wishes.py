"""Reading one key from the flavor's extra specs and the image's properties.

All rules about who may set what are in the modules that use this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from scheduler import objects
from scheduler.errors import InvalidRequest
from scheduler.objects.cpu_spec import parse_cpu_spec

_TRUE_WORDS = frozenset({"1", "t", "true", "on", "y", "yes"})


@dataclass(frozen=True, slots=True)
class Wishes:
    """What flavor and image say; the image may be missing."""

    vcpus: int
    memory_mb: int
    extra_specs: Mapping[str, str]
    properties: objects.ImageMetaProps

    @classmethod
    def of(
        cls,
        flavor: objects.Flavor,
        image: objects.ImageMeta | None,
        unknown_extra_specs: tuple[str, ...],
    ) -> Self:
        """Flavor and image without the extra specs whose names start with an unknown prefix."""
        specs = flavor.extra_specs or {}
        return cls(
            vcpus=flavor.vcpus,
            memory_mb=flavor.memory_mb,
            extra_specs={k: v for k, v in specs.items() if not (k.startswith(unknown_extra_specs))},
            properties=objects.ImageMetaProps() if image is None else image.properties,
        )

    def flavor(self, key: str) -> str | None:
        """The extra spec ``hw:<key>``; empty counts as absent."""
        return self.extra_specs.get(f"hw:{key}") or None

    def image(self, key: str) -> Any:
        """The image property ``hw_<key>``."""
        return getattr(self.properties, f"hw_{key}")

    def flavor_is_true(self, key: str) -> bool:
        """Whether the extra spec holds a word for yes."""
        return (self.flavor(key) or "").strip().lower() in _TRUE_WORDS

    def numbered(self, key: str) -> list[str]:
        """The extra specs ``hw:<key>.0``, ``.1`` … up to the first one missing."""
        texts: list[str] = []
        while (text := self.extra_specs.get(f"hw:{key}.{len(texts)}")) is not None:
            texts.append(text)
        return texts

    def totals(self, prefix: str, name: str) -> list[str]:
        """Values of ``<prefix>[group]:<name>``, of every numbered group."""
        return [
            value
            for key, value in self.extra_specs.items()
            if key.startswith(prefix) and key.partition(":")[2] == name
        ]


def refused(error: type[InvalidRequest], key: str, reason: str) -> InvalidRequest:
    """*error* about the flavor's ``hw:<key>``, or the key itself if it has a prefix."""
    name = key if ":" in key else f"hw:{key}"
    return error(field=f"flavor.extra_specs.{name}", reason=reason)


def image_refused(error: type[InvalidRequest], key: str, reason: str) -> InvalidRequest:
    """*error* about the image's ``hw_<key>``."""
    return error(field=f"image.properties.hw_{key}", reason=reason)


def cpu_set(text: str, key: str, error: type[InvalidRequest] = InvalidRequest) -> set[int]:
    """The CPUs that an extra spec lists; *error* when it cannot be read."""
    try:
        return parse_cpu_spec(text)
    except ValueError as exc:
        raise refused(error, key, str(exc)) from exc


def masked(text: str, key: str, cpus: set[int], error: type[InvalidRequest]) -> set[int]:
    """The CPUs that a mask names: with a leading ``^`` all of *cpus* but those listed."""
    whole = f"0-{len(cpus) - 1},{text}" if text.strip().startswith("^") else text
    return cpu_set(whole, key, error)
