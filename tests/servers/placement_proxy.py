"""HTTP between a scheduler and Placement, as it is in the world, and a stand-in for Keystone."""

import datetime
import http.client
import itertools
import json
import threading
import uuid
from pathlib import Path
from typing import Any

from tests.servers.certificates import Authority
from tests.servers.loopback_http import ADDRESS, LoopbackServer, QuietHandler

PASSWORD = "secret of the test"
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")


class _Identity(QuietHandler):
    def answer(self) -> None:
        owner = self.server.owner
        headers, sent = {}, json.loads(self.body() or "null")
        if sent is None:
            links = [{"rel": "self", "href": owner.url}]
            body: Any = {"version": {"id": "v3.14", "status": "stable", "links": links}}
            status = 200
        elif sent["auth"]["identity"]["password"]["user"]["password"] == PASSWORD:
            now = datetime.datetime.now(datetime.UTC)
            ends = [now, now + datetime.timedelta(hours=1)]
            issued, expires = (each.strftime("%Y-%m-%dT%H:%M:%S.000000Z") for each in ends)
            endpoint = {"interface": "public", "region_id": "here", "url": owner.placement}
            service = {"type": "placement", "name": "placement", "endpoints": [endpoint]}
            status, headers = 201, {"X-Subject-Token": owner.token()}
            body = {"issued_at": issued, "expires_at": expires, "catalog": [service]}
            body = {"token": {**body, "methods": ["password"], "user": {"id": "u", "name": "u"}}}
        else:
            status, body = 401, {"error": {"code": 401, "message": "wrong password"}}
        self.send(status, json.dumps(body).encode(), headers)


class Keystone(LoopbackServer):
    """Gives tokens for a password; a token is good for so many *calls*, whatever it says."""

    def __init__(self, calls: int, placement: str = "") -> None:
        self.placement = placement
        self._calls, self._left = calls, dict[str | None, int]()
        self._lock = threading.Lock()
        super().__init__(_Identity)

    @property
    def url(self) -> str:
        return f"{self.endpoint}/v3"

    def token(self) -> str:
        name = uuid.uuid4().hex
        self._left[name] = self._calls
        return name

    def takes(self, token: str | None) -> bool:
        """Use *token* for a call; False if it is not, or no longer, good."""
        with self._lock:
            self._left[token] = self._left.get(token, 0) - 1
            return self._left[token] >= 0


class _Passed(QuietHandler):
    def handle(self) -> None:
        with self.server.owner.served:
            super().handle()

    def answer(self) -> None:
        owner = self.server.owner
        body = self.body()
        number = next(owner.numbers)
        if owner.keystone and not owner.keystone.takes(self.headers.get("x-auth-token")):
            owner.seen.add("unauthorized")
            self.send(401, b"who are you?")
        elif owner.does("busy", number):
            self.send(503, b"busy", {"Retry-After": "1"})
        elif owner.does("loses", number):
            self.close_connection = True
        else:
            status, headers, text = self._passed_on(owner.target, body)
            if owner.does("gives up", number):
                self.send(504, b"<h1>504 Gateway Time-out</h1>", {"Content-Type": "text/html"})
            elif owner.does("forgets", number):
                self.close_connection = True
            else:
                self.send(status, text, headers)
                self.close_connection |= owner.does("closes", number)

    def _passed_on(self, port: int, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(ADDRESS, port, timeout=30)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
        headers["X-Auth-Token"] = "admin"
        connection.request(self.command, self.path, body or None, headers)
        response = connection.getresponse()
        found = {k: v for k, v in response.headers.items() if k.lower() not in _HOP_BY_HOP}
        text = response.read()
        connection.close()
        return response.status, found, text


class PlacementProxy(LoopbackServer):
    """Passes calls on to the server at *port*; ``misbehaves`` names what it does wrong, how often.

    ``closes``: the connection is closed after an answer that does not say so.  ``loses`` and
    ``forgets``: it is closed before the call is passed on, and instead of the answer.  ``busy``:
    503 and a time to wait.  ``gives up``: 504 from a proxy instead of the answer.  The number
    is that of the calls of which one gets this.  With *processes* only so many connections are
    served at once, each until it is closed.  With *keystone* a token is needed.
    """

    def __init__(
        self,
        port: int,
        protocol: str = "HTTP/1.1",
        authority: Authority | None = None,
        folder: Path | None = None,
        processes: int = 99,
        keystone: Keystone | None = None,
        **misbehaves: int,
    ) -> None:
        self.target, self.misbehaves, self.keystone = port, misbehaves, keystone
        self.served = threading.Semaphore(processes)
        self.numbers = itertools.count(1)
        #: Behaviours that were seen.
        self.seen: set[str] = set()
        super().__init__(type("_Passed", (_Passed,), {"protocol_version": protocol}))
        if authority is not None and folder is not None:
            self.use_tls(authority, folder)

    def does(self, what: str, number: int) -> bool:
        """True when call *number* gets the behaviour *what*."""
        every = self.misbehaves.get(what)
        is_due = every is not None and number % every == 0
        if is_due:
            self.seen.add(what)
        return is_due
