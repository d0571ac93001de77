"""The answer to a request."""

from __future__ import annotations

from typing import Any

from scheduler.objects.base import WireObject, to_primitive
from scheduler.objects.fields import STR, UUID, Field
from scheduler.objects.nested import ObjectOf
from scheduler.objects.registry import register
from scheduler.objects.request_parts import SchedulerLimits


@register
class Selection(WireObject):
    """One answer: a host for one instance, and how to claim it."""

    VERSION = "1.1"
    LISTS_CHANGES = True
    FIELDS = {
        "compute_node_uuid": Field(UUID),
        "service_host": Field(STR),
        "nodename": Field(STR),
        "cell_uuid": Field(UUID),
        "limits": Field(ObjectOf(SchedulerLimits), nullable=True),
        "allocation_request": Field(STR, nullable=True),
        "allocation_request_version": Field(STR, nullable=True),
        "availability_zone": Field(STR, nullable=True, since=(1, 1)),
    }

    def to_dict(self, numa_limits_version: str | None = None) -> dict[str, Any]:
        """The reply form for callers from before this class: host, nodename, limits.

        NUMA limits become an envelope, fitted to *numa_limits_version* when one is given.
        """
        limits = self.limits.to_dict() if self.limits is not None else {}
        if "numa_topology" in limits:
            limits["numa_topology"] = to_primitive(limits["numa_topology"], numa_limits_version)
        return {"host": self.service_host, "nodename": self.nodename, "limits": limits}
