"""Spans: off unless wanted, and of a decision, kept in memory."""

from typing import Any

import opentelemetry.sdk.trace as sdk
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from oslo_config import cfg
from oslo_messaging._tracing import client as library

from scheduler import errors
from scheduler.rpc.context import ObjectSerializer
from scheduler.tracing import loading
from scheduler.tracing.spans import Spans
from tests.unit.metrics.builders import a_record

BEGAN_NS = 1_795_000_000 * 10**9


class Memory:
    """A tracer and the spans that it has ended, by name."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = sdk.TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("test")

    @property
    def spans(self) -> dict[str, Any]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


def test_a_decision() -> None:
    memory = Memory()
    with memory.tracer.start_as_current_span("select_destinations receive") as outer:
        Spans(memory.tracer).decided(a_record(started_at=BEGAN_NS / 10**9))
    spans = memory.spans
    decide = spans["decide"]
    assert decide.parent.span_id == outer.get_span_context().span_id
    assert (decide.start_time, decide.end_time) == (BEGAN_NS, BEGAN_NS + 24_000_000)
    assert decide.status.status_code is trace.StatusCode.UNSET
    told = {key: decide.attributes[f"nova-scheduler.{key}"] for key in ("outcome", "chosen")}
    assert told == {"outcome": "selected", "chosen": ("h1",)}
    stages, at = {"refresh": 3.0, "filter": 0.4, "weigh": 20.0}, BEGAN_NS
    assert len(spans) == 2 + len(stages)
    for name, milliseconds in stages.items():
        assert spans[name].parent.span_id == decide.context.span_id
        began, at = at, at + int(milliseconds * 10**6)
        assert (spans[name].start_time, spans[name].end_time) == (began, at)
    (event,) = spans["filter"].events
    counts = {"start": 3, "end": 1, "ram.insufficient": 2}
    assert (event.name, dict(event.attributes)) == ("RamFilter", counts)


def test_a_refusal() -> None:
    memory = Memory()
    Spans(memory.tracer).decided(a_record(outcome="no_host_fits", chosen=[], request_id=None))
    status = memory.spans["decide"].status
    assert (status.status_code, status.description) == (trace.StatusCode.ERROR, "no_host_fits")


def test_decoding() -> None:
    memory = Memory()
    serializer = Spans(memory.tracer).serializer(ObjectSerializer())
    for entity in (["plain"], "text", None, 7):
        assert serializer.deserialize_entity({}, entity) == entity
        assert serializer.serialize_entity({}, entity) == entity
    assert not memory.spans
    assert serializer.deserialize_entity({}, {"a": [1]}) == {"a": [1]}
    assert memory.spans["decode"].status.status_code is trace.StatusCode.UNSET
    with pytest.raises(errors.NovaException):
        serializer.deserialize_entity({}, {"nova_object.name": "Nonsense"})
    assert memory.spans["decode"].status.status_code is trace.StatusCode.ERROR


# --- loading -----------------------------------------------------------------------------


def a_conf(*, can_trace: bool = True, **options: Any) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    if can_trace:
        conf.register_opts(library.oslo_messaging_tracing, group=loading.GROUP)
    conf([])
    for name, value in options.items():
        conf.set_override(name, value, group=loading.GROUP)
    return conf


def nothing(name: str) -> Any:
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("can_trace", [True, False])
def test_off_by_default(can_trace: bool) -> None:
    assert loading.load(a_conf(can_trace=can_trace), "nova-scheduler", nothing) is None


@pytest.mark.parametrize("own", [{}, {"tracing_service_name": "mine"}])
def test_on_under_a_name(own: dict[str, str]) -> None:
    conf = a_conf(tracing_enabled=True, **own)
    assert isinstance(loading.load(conf, "nova-scheduler"), Spans)
    assert conf.oslo_messaging_tracing.tracing_service_name == ("mine" if own else "nova-scheduler")


@pytest.mark.parametrize(
    ("protocol", "module"), [("http/protobuf", "proto.http"), ("grpc", "grpc")]
)
def test_what_is_missing_is_named(protocol: str, module: str) -> None:
    conf = a_conf(tracing_enabled=True, otlp_protocol=protocol)
    name = rf"opentelemetry\.exporter\.otlp\..*{module}\.trace_exporter"
    with pytest.raises(errors.ConfigurationError, match=rf"tracing_enabled.*{name}.*pip install"):
        loading.load(conf, "nova-scheduler", nothing)
