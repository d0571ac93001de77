"""The smaller objects that a request is made of (reference page objects, section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from scheduler.objects.base import WireObject, described
from scheduler.objects.cell import CellMapping
from scheduler.objects.compute_node import ComputeNode, ComputeNodeList
from scheduler.objects.fields import (
    BOOL,
    INT,
    STR,
    UUID,
    BadValue,
    DictOf,
    Field,
    ListOf,
    SetOf,
)
from scheduler.objects.limits import NUMATopologyLimits
from scheduler.objects.nested import ObjectOf
from scheduler.objects.registry import register

_NUMA_LIMITS = ObjectOf(NUMATopologyLimits, plain=NUMATopologyLimits.read_plain)


@register
class Destination(WireObject):
    """Where the request has to go; with only ``cell`` set it pins no host."""

    VERSION = "1.4"
    FIELDS = {
        "host": Field(STR),
        "node": Field(STR, nullable=True),
        "cell": Field(ObjectOf(CellMapping), nullable=True, since=(1, 1)),
        "aggregates": Field(ListOf(STR), nullable=True, default=None, since=(1, 2)),
        "allow_cross_cell_move": Field(BOOL, default=False, since=(1, 3)),
        "forbidden_aggregates": Field(SetOf(STR), nullable=True, default=None, since=(1, 4)),
    }

    aggregates: list[str] | None
    forbidden_aggregates: set[str] | None

    def require_aggregates(self, aggregates: Iterable[str]) -> None:
        """Demand one of *aggregates* (uuids), on top of what was demanded before."""
        self.aggregates = [*(self.aggregates or ()), ",".join(aggregates)]

    def append_forbidden_aggregates(self, aggregates: Iterable[str]) -> None:
        """Rule out all of *aggregates* (uuids)."""
        self.forbidden_aggregates = {*(self.forbidden_aggregates or ()), *aggregates}


@register
class SchedulerRetries(WireObject):
    """How often this build was tried, and on which hosts; with nothing set it is no retry."""

    VERSION = "1.1"
    FIELDS = {"num_attempts": Field(INT), "hosts": Field(ObjectOf(ComputeNodeList))}

    @classmethod
    def read_dict(cls, retry: Mapping[str, Any]) -> Self:
        """As :meth:`from_dict`, raising BadValue with a relative path."""
        if not isinstance(retry, Mapping):
            raise BadValue(f"a mapping is needed, not {described(retry)}")
        if "hosts" not in retry:
            return cls()
        entries = retry["hosts"] or []
        if not isinstance(entries, list) or not all(_is_pair(entry) for entry in entries):
            raise BadValue("every entry must be [host, node]", "hosts")
        attempts = cls.FIELDS["num_attempts"].accept("num_attempts", retry.get("num_attempts"))
        nodes = [ComputeNode(host=host, hypervisor_hostname=node) for host, node in entries]
        return cls(num_attempts=attempts, hosts=ComputeNodeList(objects=nodes))

    @classmethod
    def from_dict(cls, retry: Mapping[str, Any]) -> Self:
        """Read ``{"num_attempts", "hosts": [[host, node], …]}``; other keys are dropped.

        Without ``hosts`` nothing is set.  Raises InvalidRequest for malformed entries or when
        ``num_attempts`` is missing.
        """
        try:
            return cls.read_dict(retry)
        except BadValue as exc:
            raise cls.complaint(exc) from exc

    def to_dict(self) -> dict[str, Any]:
        """The legacy dict; empty when nothing is set."""
        if not self.is_set("hosts"):
            return {}
        hosts = [[node.host, node.hypervisor_hostname] for node in self.hosts]
        return {"num_attempts": self.num_attempts, "hosts": hosts}


def _is_pair(entry: Any) -> bool:
    is_pair = isinstance(entry, (list, tuple)) and len(entry) == 2
    return is_pair and isinstance(entry[0], str) and isinstance(entry[1], str | None)


@register
class SchedulerLimits(WireObject):
    """What the chosen host may be filled up to, as the filters decided; sizes in MB and GB."""

    VERSION = "1.0"
    LISTS_CHANGES = True
    FIELDS = {
        "numa_topology": Field(_NUMA_LIMITS, nullable=True, default=None),
        "vcpu": Field(INT, nullable=True, default=None),
        "disk_gb": Field(INT, nullable=True, default=None),
        "memory_mb": Field(INT, nullable=True, default=None),
    }

    @classmethod
    def read_dict(cls, limits: Mapping[str, Any] | None) -> Self:
        """As :meth:`from_dict`, raising BadValue with a relative path."""
        if not isinstance(limits, Mapping | None):
            raise BadValue(f"a mapping is needed, not {described(limits)}")
        result = cls.read_fields(limits or {})
        result.set_defaults()
        return result

    @classmethod
    def from_dict(cls, limits: Mapping[str, Any] | None) -> Self:
        """Read the dict form: missing keys become null, floats are cut to ints, null is all null.

        Raises InvalidRequest for values that are no numbers.
        """
        try:
            return cls.read_dict(limits)
        except BadValue as exc:
            raise cls.complaint(exc) from exc

    def to_dict(self) -> dict[str, Any]:
        """The limits that are not null; ``numa_topology`` stays an object."""
        return {name: value for name, value in self.set_fields().items() if value is not None}


@register
class RequestGroup(WireObject):
    """Resources that have to come from one provider; created with all defaults."""

    VERSION = "1.3"
    FILL_DEFAULTS = True
    FIELDS = {
        "use_same_provider": Field(BOOL, default=True),
        "resources": Field(DictOf(INT), default=dict),
        "required_traits": Field(SetOf(STR), default=set),
        "forbidden_traits": Field(SetOf(STR), default=set),
        "aggregates": Field(ListOf(ListOf(STR)), default=list),
        "forbidden_aggregates": Field(SetOf(STR), default=set),
        "requester_id": Field(STR, nullable=True, default=None),
        "provider_uuids": Field(ListOf(UUID), default=list),
        "in_tree": Field(UUID, nullable=True, default=None),
    }


@register
class RequestLevelParams(WireObject):
    """Demands on the request as a whole."""

    VERSION = "1.1"
    FIELDS = {
        "root_required": Field(SetOf(STR), default=set),
        "root_forbidden": Field(SetOf(STR), default=set),
        "same_subtree": Field(ListOf(ListOf(STR)), default=list),
    }
