"""Hardware keys of a flavor's extra specs and an image's properties, and their refusals.

Rules about who may set what are in ``policies`` and ``constraints``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from oslo_utils import strutils

from scheduler import objects
from scheduler.errors import refused
from scheduler.numa.topology import ANY_PAGES, LARGE_PAGES, SMALL_PAGES
from scheduler.objects.numa import parse_cpu_spec

_SIZE_WORDS = {"small": SMALL_PAGES, "large": LARGE_PAGES, "any": ANY_PAGES}


@dataclass(frozen=True, slots=True)
class HardwareSpecs:
    """The hardware keys of a flavor and, if there is one, of an image."""

    vcpus: int
    memory_mb: int
    extra_specs: Mapping[str, str]
    properties: objects.ImageMetaProps

    @classmethod
    def from_objects(
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


def cpu_set(text: str, key: str, error: str = "InvalidRequest") -> set[int]:
    """The CPUs that an extra spec lists; *error* when it cannot be read."""
    try:
        return parse_cpu_spec(text)
    except ValueError as exc:
        raise refused(error, key, str(exc)) from exc


def masked(text: str, key: str, cpus: set[int], error: str) -> set[int]:
    """The CPUs that a mask names: with a leading ``^`` all of *cpus* but those listed."""
    whole = f"0-{len(cpus) - 1},{text}" if text.strip().startswith("^") else text
    return cpu_set(whole, key, error)


def requires_threads(flavor: objects.Flavor | None, image: objects.ImageMeta | None) -> bool:
    """True when flavor and image request pinned CPUs that are siblings (section 8.1)."""
    specs = {} if flavor is None else flavor.extra_specs or {}
    properties = objects.ImageMetaProps() if image is None else image.properties
    policies = (specs.get("hw:cpu_policy"), properties.hw_cpu_policy)
    threads = (specs.get("hw:cpu_thread_policy"), properties.hw_cpu_thread_policy)
    return "dedicated" in policies and "require" in threads


def newton_size_kb(text: str) -> int:
    """A page constant or a size in KiB, as Newton reads it (section 4.3); ValueError for others."""
    if text in _SIZE_WORDS:
        return _SIZE_WORDS[text]
    if text.strip().lstrip("-").isdecimal():
        return _positive(int(text))
    return _with_unit(text)


def current_size_kb(text: str) -> int | None:
    """As in Newton, but blanks are refused and ``0`` requests nothing (section 10.2)."""
    if text in _SIZE_WORDS:
        return _SIZE_WORDS[text]
    if text.isdecimal():
        return int(text) or None
    return _with_unit(text)


def _with_unit(text: str) -> int:
    return _positive(int(strutils.string_to_bytes(text)) // 1024)


def _positive(size_kb: int) -> int:
    if size_kb <= 0:
        raise ValueError("a page size is 1 KiB at least")
    return size_kb
