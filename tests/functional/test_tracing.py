"""Spans of a request, from the caller's to the claim, as a collector gets them."""

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.functional.collecting import Collector
from tests.world import fleet
from tests.world.bus import recorded
from tests.world.connection import RawCaller

pytestmark = pytest.mark.functional

OWN = {"decode", "decide", "refresh", "filter", "weigh", "claim"}
TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_spans_of_one_request(deployment, transport_url, tmp_path, backend):
    database_url = f"sqlite:///{tmp_path}/nova.sqlite"
    fleet.install(database_url)
    with Collector() as collected:
        settings = {
            "DEFAULT": {"host": "sched1", "service_down_time": 3600},
            "scheduler": {"claims": "database"},
            "oslo_messaging_tracing": {
                "tracing_enabled": True,
                "otel_exporter_otlp_endpoint": collected.url,
            },
        }
        cloud = deployment(transport_url, database_url, backend=backend, settings=settings)
        scheduler = cloud.start_scheduler().wait_ready()
        with RawCaller(transport_url) as raw:
            caller = {"_context_traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}
            reply = raw.call({**recorded("select_destinations-simple.request"), **caller})
        assert reply["failure"] is None
        assert scheduler.terminate() == 0, "which sends what was not sent yet"
    # There may be others, of what the scheduler does by itself.
    spans = {
        span.name: span
        for span in collected.of_service("nova-scheduler")
        if span.trace_id.hex() == TRACE_ID
    }
    assert spans.keys() >= OWN
    outer = spans["select_destinations receive"]
    assert outer.parent_span_id.hex() == PARENT_ID
    inside = {spans[name].parent_span_id for name in ("decode", "decide")}
    assert inside == {outer.span_id}
    stages = {spans[name].parent_span_id for name in OWN - {"decode", "decide"}}
    assert stages == {spans["decide"].span_id}
    assert attribute(spans["decide"], "nova-scheduler.outcome") == "selected"
    assert "Traceback" not in scheduler.log


def attribute(span: Span, key: str) -> str:
    return next(each.value.string_value for each in span.attributes if each.key == key)
