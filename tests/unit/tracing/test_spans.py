"""Spans of a decision, kept in memory."""

from __future__ import annotations

import opentelemetry.sdk.trace as sdk
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from scheduler import errors
from scheduler.rpc.messages import ObjectSerializer
from scheduler.tracing.spans import Spans
from tests.unit.metrics.builders import a_record

BEGAN_NS = 1_795_000_000 * 10**9


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter: InMemorySpanExporter) -> trace.Tracer:
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test")


def by_name(exporter: InMemorySpanExporter) -> dict[str, sdk.ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_a_decision(exporter: InMemorySpanExporter, tracer: trace.Tracer) -> None:
    with tracer.start_as_current_span("select_destinations receive") as outer:
        Spans(tracer).decided(a_record(started_at=BEGAN_NS / 10**9))
    spans = by_name(exporter)
    decide = spans["decide"]
    assert decide.parent is not None
    assert decide.parent.span_id == outer.get_span_context().span_id
    assert (decide.start_time, decide.end_time) == (BEGAN_NS, BEGAN_NS + 24_000_000)
    assert decide.status.status_code is trace.StatusCode.UNSET
    assert decide.attributes is not None
    told = {key: decide.attributes[f"nova-scheduler.{key}"] for key in ("outcome", "chosen")}
    assert told == {"outcome": "selected", "chosen": ("h1",)}

    stages = {name: spans[name] for name in ("refresh", "filter", "weigh")}
    assert len(spans) == 2 + len(stages)
    at = BEGAN_NS
    for name, milliseconds in (("refresh", 3.0), ("filter", 0.4), ("weigh", 20.0)):
        span = stages[name]
        assert span.parent is not None
        assert span.parent.span_id == decide.context.span_id
        assert (span.start_time, span.end_time) == (at, at + int(milliseconds * 10**6))
        at += int(milliseconds * 10**6)
    (event,) = stages["filter"].events
    assert (event.name, dict(event.attributes or {})) == (
        "RamFilter",
        {"start": 3, "end": 1, "ram.insufficient": 2},
    )


@pytest.mark.parametrize("code", errors.CODES)
def test_a_refusal(exporter: InMemorySpanExporter, tracer: trace.Tracer, code: str) -> None:
    Spans(tracer).decided(a_record(outcome=code, chosen=[], request_id=None))
    status = by_name(exporter)["decide"].status
    assert (status.status_code, status.description) == (trace.StatusCode.ERROR, code)


def test_decoding(exporter: InMemorySpanExporter, tracer: trace.Tracer) -> None:
    serializer = Spans(tracer).serializer(ObjectSerializer())
    for entity in (["plain"], "text", None, 7):
        assert serializer.deserialize_entity({}, entity) == entity
        assert serializer.serialize_entity({}, entity) == entity
    assert not exporter.get_finished_spans()
    assert serializer.deserialize_entity({}, {"a": [1]}) == {"a": [1]}
    assert list(by_name(exporter)) == ["decode"]


def test_what_cannot_be_decoded(exporter: InMemorySpanExporter, tracer: trace.Tracer) -> None:
    serializer = Spans(tracer).serializer(ObjectSerializer())
    with pytest.raises(errors.NovaException):
        serializer.deserialize_entity({}, {"nova_object.name": "Nonsense"})
    assert by_name(exporter)["decode"].status.status_code is trace.StatusCode.ERROR
