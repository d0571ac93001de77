"""The library's span of a request, inside the caller's, as a collector gets it."""

import pytest

from tests.functional.collecting import Collector
from tests.world import fleet
from tests.world.bus import recorded
from tests.world.connection import RawCaller

pytestmark = pytest.mark.functional

TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_span_of_one_request(deployment, transport_url, tmp_path, backend):
    database_url = f"sqlite:///{tmp_path}/nova.sqlite"
    fleet.install(database_url)
    with Collector() as collected:
        settings = {
            "DEFAULT": {"host": "sched1", "service_down_time": 3600},
            "oslo_messaging_tracing": {
                "tracing_enabled": True,
                "otel_exporter_otlp_endpoint": collected.endpoint,
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
    spans = collected.of_service("nova-scheduler")
    (received,) = [span for span in spans if span.trace_id.hex() == TRACE_ID]
    assert received.name == "select_destinations receive"
    assert received.parent_span_id.hex() == PARENT_ID
    assert "Traceback" not in scheduler.log
