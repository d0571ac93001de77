"""Metrics of a host (reference pages objects, section 6, and database, section 5.4)."""

from __future__ import annotations

import json
from typing import Any, Self

from scheduler import errors
from scheduler.objects import json_text
from scheduler.objects.base import WireObject, described
from scheduler.objects.enums import METRICS, PERCENT_METRICS, carried
from scheduler.objects.fields import DATETIME, INT, STR, DictOf, Field
from scheduler.objects.nested import ListObject, elements
from scheduler.objects.registry import register


@register
class MonitorMetric(WireObject):
    """One measured value; percentages are 0 to 100 here and 0 to 1 in the database's text."""

    VERSION = "1.1"
    FIELDS = {
        "name": Field(carried(*METRICS)),
        "value": Field(INT),
        "numa_membw_values": Field(DictOf(INT), nullable=True),
        "timestamp": Field(DATETIME),
        "source": Field(STR),
    }

    @classmethod
    def from_dict(cls, metric: dict[str, Any]) -> Self:
        """Read one entry of the text; a percentage is cut to an int after scaling, as Nova does."""
        values = {name: metric[name] for name in cls.FIELDS if metric.get(name) is not None}
        scaled = values.get("name") in PERCENT_METRICS
        if scaled and isinstance(values.get("value"), (int, float)):
            values["value"] *= 100
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """The entry for the text."""
        values = self.set_fields()
        if self.timestamp is not None:
            values["timestamp"] = self.timestamp.replace(tzinfo=None).isoformat()
        if self.name in PERCENT_METRICS and self.value is not None:
            values["value"] = self.value / 100.0
        return values


@register
class MonitorMetricList(ListObject):
    """All metrics of a host."""

    VERSION = "1.1"
    FIELDS = elements(MonitorMetric)

    @classmethod
    def from_text(cls, text: str | None) -> Self:
        """Read ``compute_nodes.metrics``; null and the empty text give an empty list.

        Raises InvalidRequest when the text is no JSON list of metrics.
        """
        try:
            metrics = json_text.read(text) if text else []
        except ValueError as exc:
            raise errors.InvalidRequest(field=cls.__name__, reason=f"not JSON: {exc}") from exc
        if not isinstance(metrics, list) or not all(isinstance(m, dict) for m in metrics):
            raise errors.InvalidRequest(field=cls.__name__, reason=f"found {described(metrics)}")
        return cls(objects=[MonitorMetric.from_dict(metric) for metric in metrics])

    def to_text(self) -> str:
        """The JSON text for the column."""
        return json.dumps([metric.to_dict() for metric in self])
