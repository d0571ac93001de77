"""An OpenTelemetry collector: takes spans over HTTP and keeps them."""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """Spans by the name of the service that sent them, as they came."""

    url: str
    spans: list[tuple[str, Span]] = field(default_factory=list)

    def of(self, service: str) -> list[Span]:
        """Those of one service so far."""
        return [span for name, span in list(self.spans) if name == service]

    def take(self, body: bytes) -> None:
        """Keep what one request brings."""
        request = ExportTraceServiceRequest.FromString(body)
        for several in request.resource_spans:
            attributes = {each.key: each.value.string_value for each in several.resource.attributes}
            for scope in several.scope_spans:
                self.spans += [(attributes["service.name"], span) for span in scope.spans]


@contextmanager
def collector() -> Iterator[Collector]:
    """One that listens on a port of its own."""
    collected = Collector("")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collected.take(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Nobody reads it."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collected.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield collected
        server.shutdown()
        thread.join()
