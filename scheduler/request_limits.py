"""Limits of the size of one request: far above any of Nova's."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any

from scheduler import errors, objects


@dataclass(frozen=True)
class RequestLimits:
    """The limits that ``[scheduler]`` sets."""

    most_instances: int
    most_entries: int
    most_characters: int

    @classmethod
    def from_conf(cls, conf: Any) -> RequestLimits:
        """The limits that *conf* sets."""
        options = conf.scheduler
        return cls(
            options.max_instances_per_request,
            options.max_request_entries,
            options.max_request_text_characters,
        )

    def check_instances(self, field: str, count: int, least: int = 0) -> None:
        """Raise InvalidRequest for too many instances, or fewer than *least*."""
        if not least <= count <= self.most_instances:
            reason = (
                f"{count} instances; {least} to {self.most_instances} may be asked for at once "
                "([scheduler] max_instances_per_request)"
            )
            raise errors.InvalidRequest(field=field, reason=reason)

    def check(self, spec: objects.RequestSpec) -> None:
        """Raise InvalidRequest naming the first part of *spec* that is too large."""
        for name, part in _parts(spec):
            self._check_entries(name, part)
        for hint, values in (spec.scheduler_hints or {}).items():
            name = f"RequestSpec.scheduler_hints.{hint}"
            self._check_entries(name, values)
            for value in values:
                self._check_text(name, value)
        flavor = spec.flavor
        if flavor is not None:
            for key, value in (flavor.extra_specs or {}).items():
                self._check_text(f"RequestSpec.flavor.extra_specs.{key}", value)

    def _check_entries(self, name: str, part: Sized) -> None:
        if len(part) > self.most_entries:
            reason = f"{len(part)} entries; [scheduler] max_request_entries allows "
            raise errors.InvalidRequest(field=name, reason=f"{reason}{self.most_entries}")

    def _check_text(self, name: str, text: str) -> None:
        if len(text) > self.most_characters:
            reason = (
                f"{len(text)} characters; [scheduler] max_request_text_characters allows "
                f"{self.most_characters}"
            )
            raise errors.InvalidRequest(field=name, reason=reason)


_SIZED = (
    *("scheduler_hints", "ignore_hosts", "force_hosts", "force_nodes", "requested_resources"),
    *("flavor.extra_specs", "instance_group.members", "instance_group.hosts"),
    *("pci_requests.requests", "numa_topology.cells", "retry.hosts"),
    *("requested_destination.aggregates", "requested_destination.forbidden_aggregates"),
)


def _parts(spec: objects.RequestSpec) -> Iterator[tuple[str, Sized]]:
    for path in _SIZED:
        found: Any = spec
        for name in path.split("."):
            found = None if found is None else getattr(found, name)
        yield f"RequestSpec.{path}", found or ()
