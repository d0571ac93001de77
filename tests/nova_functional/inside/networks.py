"""Neutron over HTTP for our scheduler, answered by what stands in for it in the test."""

import functools
import http.server
import json
import threading
import urllib.parse
from typing import Any
from unittest import mock

from nova.network import neutron
from nova.scheduler.client.report import SchedulerReportClient

from scheduler.claims.placement.client import PlacementClient


@functools.cache
def endpoint() -> str:
    """Where a server listens, to the end of the process."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True, name="neutron").start()
    return f"http://127.0.0.1:{server.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        client = neutron.get_client(None, admin=True)  # replaced by the test's fixture
        path, _mark, query = self.path.removeprefix("/v2.0/").partition("?")
        kind, _slash, name = path.partition("/")
        if name:
            found = getattr(client, f"show_{kind.removesuffix('s')}")(name)
        else:
            found = getattr(client, f"list_{kind}")(**dict(urllib.parse.parse_qsl(query)))
        content = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


def install() -> None:
    """Let a mock of how Nova reads aggregates answer ours, too."""
    part_of = PlacementClient.part_of

    def answered(self: Any, provider: str, part: str, requester: Any) -> Any:
        mocked = SchedulerReportClient._get_provider_aggregates
        if part != "aggregates" or not isinstance(mocked, mock.NonCallableMock):
            return part_of(self, provider, part, requester)
        found = mocked(None, provider)
        return [] if found is None else found.aggregates

    PlacementClient.part_of = answered
