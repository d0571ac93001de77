"""An OpenTelemetry collector: takes spans over HTTP and keeps them."""

import gzip

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.servers.loopback_http import LoopbackServer, QuietHandler


class Collector(LoopbackServer):
    """Spans with the name of the service that sent them, as they came."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Span]] = []
        super().__init__(_Call)

    def of_service(self, service: str) -> list[Span]:
        return [span for name, span in list(self.spans) if name == service]


class _Call(QuietHandler):
    def answer(self) -> None:
        body = self.body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        for several in ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {each.key: each.value.string_value for each in several.resource.attributes}
            for scope in several.scope_spans:
                self.server.owner.spans += [(attributes["service.name"], s) for s in scope.spans]
        self.send(200)
