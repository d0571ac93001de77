"""From a placement to the Selection objects of the reply (scheduling page, section 2.5)."""

from __future__ import annotations

from typing import Any

from scheduler import objects
from scheduler.engine.decision import Placement
from scheduler.hosts.host_state import HostState

#: What ``allocation_request`` holds without Placement: the JSON text of null.
NO_ALLOCATION_REQUEST = "null"
ZONE_KEY = "availability_zone"
#: What a Selection says of its host, and the attributes of the host.
_NAMES = (
    ("compute_node_uuid", "uuid"),
    ("service_host", "host"),
    ("nodename", "nodename"),
    ("cell_uuid", "cell_uuid"),
)


_NUMBERS, _TEXT = frozenset((int, float)), frozenset((str,))
#: So many different limits are remembered.
_MOST_LIMITS = 1000


class Templates:
    """Selections by their limits, to make others like them from: few hosts differ in limits."""

    def __init__(self) -> None:
        self._of_limits: dict[tuple[Any, ...], objects.Selection] = {}

    def of(self, limits: dict[str, Any]) -> objects.Selection | None:
        """One with these *limits*; None if there was none, or they are not just numbers."""
        if not _are_numbers(limits):
            return None
        return self._of_limits.get(tuple(limits.items()))

    def keep(self, made: objects.Selection, limits: dict[str, Any]) -> None:
        """Remember a copy of one that was *made*, if its *limits* are just numbers."""
        if _are_numbers(limits):
            if len(self._of_limits) >= _MOST_LIMITS:
                self._of_limits.clear()
            self._of_limits[tuple(limits.items())] = made.copy()


def _are_numbers(limits: dict[str, Any]) -> bool:
    return _NUMBERS.issuperset(map(type, limits.values()))


class _Selections:
    """Makes the Selections of one reply, in which hosts and limits come again and again."""

    def __init__(self, zone_if_none: str, templates: Templates) -> None:
        self._zone_if_none = zone_if_none
        self._templates = templates
        self._of_row: dict[int, objects.Selection] = {}
        #: By their id the limits that came before, and a Selection with these.
        self._of_limits: dict[int, tuple[dict[str, Any], objects.Selection]] = {}
        self._zones: dict[int, str] = {}

    def of(self, host: HostState, limits: dict[str, Any]) -> objects.Selection:
        """One of its own, which may share its limits with others of the reply."""
        known = self._of_row.get(host.row)
        if known is not None and known.limits_exact == limits:
            return _twin(known)
        made = self._of_row[host.row] = self._of_host(host, limits)
        return made

    def _of_host(self, host: HostState, limits: dict[str, Any]) -> objects.Selection:
        alike = self._alike(limits)
        named = _named(host)
        if alike is None or not _TEXT.issuperset(map(type, named.values())):
            made = selection_of(host, limits, self._zone_if_none)
            self._templates.keep(made, limits)
            return made
        twin = _twin(alike)
        twin.__dict__.update(named, availability_zone=self._zone(host))
        return twin

    def _alike(self, limits: dict[str, Any]) -> objects.Selection | None:
        """One with these limits, which it has for itself."""
        _limits, known = self._of_limits.get(id(limits), (limits, None))
        if known is None:
            template = self._templates.of(limits)
            if template is None:
                return None
            known = _twin(template)
            known.__dict__.update(limits=_twin(template.limits), limits_exact=dict(limits))
            self._of_limits[id(limits)] = limits, known
        return known

    def _zone(self, host: HostState) -> str:
        number = int(host.table.document_numbers("aggregates")[host.row])
        zone = self._zones.get(number)
        if zone is None:
            zone = self._zones[number] = zone_of(host, self._zone_if_none)
        return zone


def _named(host: HostState) -> dict[str, Any]:
    table, row = host.table, host.row
    return {field: table.text(row, name) for field, name in _NAMES}


def _twin(known: Any) -> Any:
    twin = object.__new__(type(known))
    twin.__dict__.update(known.__dict__)
    return twin


def selections_of(
    placement: Placement, zone_if_none: str, templates: Templates | None = None
) -> list[list[objects.Selection]]:
    """Per instance the Selection of its host and those of its alternates.

    *templates* are those of earlier replies, if there were any.
    """
    selections = _Selections(zone_if_none, templates or Templates())
    return [
        [
            selections.of(host, limits),
            *(selections.of(other, other.limits) for other in alternates),
        ]
        for host, limits, alternates in zip(
            placement.hosts, placement.limits, placement.alternates, strict=True
        )
    ]


def zone_of(host: HostState, zone_if_none: str) -> str:
    """The host's zone: the first that its aggregates name, else *zone_if_none*."""
    for aggregate in host.aggregates:
        names = (aggregate.metadata or {}).get(ZONE_KEY, "")
        for name in names.split(","):
            if name.strip():
                return str(name.strip())
    return zone_if_none


def selection_of(host: HostState, limits: dict[str, Any], zone_if_none: str) -> objects.Selection:
    """The Selection of *host* with *limits*; *zone_if_none* if no aggregate names a zone."""
    selection = objects.Selection(
        **_named(host),
        limits=objects.SchedulerLimits.from_dict(limits),
        allocation_request=NO_ALLOCATION_REQUEST,
        allocation_request_version=None,
        availability_zone=zone_of(host, zone_if_none),
    )
    selection.limits_exact = dict(limits)  # the dict form of the reply keeps the fractions
    return selection


def as_dict(chosen: Any, numa_limits_version: str | None) -> dict[str, Any]:
    """What callers below 4.5 get for one instance; a driver of Newton's kind made it itself.

    The limits keep the fractions that the integers of a SchedulerLimits object lose.
    """
    if isinstance(chosen, dict):
        return chosen
    selection = chosen[0]
    reply: dict[str, Any] = selection.to_dict(numa_limits_version)
    if selection.limits is None:
        return {**reply, "limits": None}
    exact = getattr(selection, "limits_exact", None) or {}
    floats = {name: value for name, value in exact.items() if isinstance(value, int | float)}
    return {**reply, "limits": {**reply["limits"], **floats}}
