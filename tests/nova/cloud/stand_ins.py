"""Stand-ins for Glance, with one image, and for Neutron, with no network at all.

They answer what Nova asks for servers without a port, and nothing else.
"""

import json
from urllib.parse import urlsplit

from tests.servers.loopback_http import LoopbackServer, QuietHandler

IMAGE = "00000000-0000-4000-8000-000000000001"
_IMAGE = {
    "id": IMAGE,
    "name": "cirros",
    "status": "active",
    "visibility": "public",
    "container_format": "bare",
    "disk_format": "raw",
    "size": 2**20,
    "min_disk": 0,
    "min_ram": 0,
    "owner": "demo",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
    "schema": "/v2/schemas/image",
}
_SCHEMA = {"name": "image", "properties": {name: {} for name in _IMAGE}}
_COLLECTIONS = ("extensions", "floatingips", "networks", "ports", "security-groups", "subnets")
_ANSWERS = {
    f"/v2/images/{IMAGE}": _IMAGE,
    "/v2/schemas/image": _SCHEMA,
    **{f"/v2.0/{name}": {name.replace("-", "_"): []} for name in _COLLECTIONS},
}


class _Call(QuietHandler):
    def answer(self) -> None:
        self.body()
        found = _ANSWERS.get(urlsplit(self.path).path) if self.command == "GET" else None
        if found is None:
            self.server.owner.unknown.append(f"{self.command} {self.path}")
        text = json.dumps(found or {"message": "nothing like that here"}).encode()
        self.send(200 if found else 404, text, {"Content-Type": "application/json"})


class StandIns(LoopbackServer):
    """Both on one port; ``unknown`` lists calls that neither has an answer for."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        super().__init__(_Call)
