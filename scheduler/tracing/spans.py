"""Spans as OpenTelemetry has them.

A decision's span and those of its stages are made when it is over, of what its record has
measured: the decision itself does not know of them.
"""

from __future__ import annotations

from typing import Any, Final

import opentelemetry.sdk.trace
import oslo_messaging
from opentelemetry import trace

import scheduler
from scheduler.engine.record import CLAIM, FILTER, LATER, REFRESH, SELECTED, WEIGH, DecisionRecord

NAME: Final = "nova-scheduler"
STAGES: Final = (REFRESH, FILTER, WEIGH, LATER, CLAIM)
"""In the order they begin; stages that alternate are drawn as one after the other."""
_NS_PER_MS, _NS_PER_S = 1_000_000, 1_000_000_000


class Spans:
    """Makes spans with *tracer*; by default that of whoever set one up: the library does."""

    def __init__(self, tracer: trace.Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer(NAME, scheduler.__version__)

    def decided(self, record: DecisionRecord) -> None:
        """A span ``decide`` within the current one, with one span per stage in it."""
        began = int(record.started_at * _NS_PER_S)
        span = self._tracer.start_span("decide", start_time=began, attributes=_attributes(record))
        inside = trace.set_span_in_context(span)
        at = began
        for stage in STAGES:
            if stage not in record.stages_ms:
                continue
            part = self._tracer.start_span(stage, inside, start_time=at)
            if stage == FILTER:
                for each in record.filters:
                    counts = {"start": each.start, "end": each.end, **each.removed}
                    part.add_event(each.name, counts, at)
            at += int(record.stages_ms[stage] * _NS_PER_MS)
            part.end(at)
        if record.outcome != SELECTED:
            span.set_status(trace.StatusCode.ERROR, record.outcome)
        span.end(began + int(record.elapsed_ms * _NS_PER_MS))

    def serializer(self, entities: oslo_messaging.NoOpSerializer) -> oslo_messaging.NoOpSerializer:
        """Decode as *entities* does, within a span ``decode`` for what is worth one."""
        return _TracingSerializer(entities, self._tracer)

    def flush(self) -> None:
        """Send what was not sent yet."""
        provider = trace.get_tracer_provider()
        if isinstance(provider, opentelemetry.sdk.trace.TracerProvider):
            provider.force_flush()


def _attributes(record: DecisionRecord) -> dict[str, Any]:
    """Keys as the record's JSON form has them, below one prefix."""
    values = {
        "request_id": record.request_id,
        "instance_uuids": record.instance_uuids,
        "num_instances": record.num_instances,
        "driver": record.driver,
        "outcome": record.outcome,
        "fleet": record.fleet,
        "considered": record.hosts_considered,
        "passed": record.hosts_left,
        "chosen": [host for host, _node in record.chosen],
        "state_age_seconds": record.state_age_seconds,
        "races_lost": record.races_lost,
    }
    return {f"{NAME}.{key}": value for key, value in values.items() if value is not None}


class _TracingSerializer(oslo_messaging.NoOpSerializer):
    """Leaves everything to *entities*; containers are worth a span when they are decoded."""

    def __init__(self, entities: oslo_messaging.NoOpSerializer, tracer: trace.Tracer) -> None:
        self._entities = entities
        self._tracer = tracer

    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """As *entities* does."""
        return self._entities.serialize_entity(ctxt, entity)

    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """As *entities* does."""
        if not isinstance(entity, dict):
            return self._entities.deserialize_entity(ctxt, entity)
        with self._tracer.start_as_current_span("decode"):
            return self._entities.deserialize_entity(ctxt, entity)
