"""The routes of the status page, on whichever worker is asked.

The public ones answer for all workers; those below ``/status/worker`` for this one alone.
"""

from __future__ import annotations

import gzip
import hashlib
import http
import importlib.resources
import json
import os
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler.concurrency import HubCalls
from scheduler.status_page.live import LiveStatus
from scheduler.web.routes import JSON, Request, Response, Routes
from scheduler.web.workers import Workers

PATH: Final = "/status"
_CONTENT_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: Nothing but these files and this server's answers; nobody else may show or read them.
POLICY: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
STARTING: Final = Response(
    b'{"error":"the daemon is starting"}', JSON, http.HTTPStatus.SERVICE_UNAVAILABLE, POLICY
)
_WORTH_PACKING_BYTES: Final = 1000
#: The fastest: the whole fleet takes two milliseconds then, and a thirteenth of its size.
_GZIP_LEVEL: Final = 1
_SEEN: Final = re.compile(r"[0-9a-f.,]*", re.ASCII)


class StatusPage:
    """Answers from *live*, this worker's state, and from those of the other *workers*.

    While *live* gives None, the worker is starting, and says so.
    """

    def __init__(
        self, workers: Workers, hub: HubCalls, live: Callable[[], LiveStatus | None]
    ) -> None:
        self._live = live
        self._workers = workers
        self._hub = hub
        self._files = _read_files()

    def add_to(self, routes: Routes) -> None:
        """Answer everything below ``/status``."""
        routes.add(PATH, self._page)
        routes.add(f"{PATH}/", self._file)
        routes.add(f"{PATH}/live", self._all)
        routes.add(f"{PATH}/decisions/", self._decision)
        routes.add(f"{PATH}/worker", self._this_worker)
        routes.add(f"{PATH}/worker/fleet", self._this_fleet)
        routes.add(f"{PATH}/worker/decisions/", self._this_decision)

    # --- files ---------------------------------------------------------------------------

    def _page(self, request: Request) -> Response:
        return self._file(Request(request.path, "status.html", headers=request.headers))

    def _file(self, request: Request) -> Response:
        if not request.rest:
            to_page = {**POLICY, "Location": f"..{PATH}"}
            return Response(b"", status=http.HTTPStatus.PERMANENT_REDIRECT, headers=to_page)
        found = self._files.get(request.rest)
        if found is None:
            return Response.of_text("not found", http.HTTPStatus.NOT_FOUND)
        content, content_type, tag = found
        headers = {**POLICY, "ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(b"", content_type, http.HTTPStatus.NOT_MODIFIED, headers)
        return Response(content, content_type, headers=headers)

    # --- this worker alone ---------------------------------------------------------------

    def _this_worker(self, request: Request) -> Response:
        live = self._live()
        if live is None:
            return STARTING
        return _json(self._hub.call(live.worker, _seen(request)))

    def _this_fleet(self, request: Request) -> Response:
        live = self._live()
        if live is None:
            return STARTING
        return _json(self._hub.call(live.fleet, request.query.get("since", "")))

    def _this_decision(self, request: Request) -> Response:
        live = self._live()
        found = None if live is None else self._hub.call(live.decision, request.rest)
        if found is None:
            return Response.of_json({"error": "not kept any more"}, http.HTTPStatus.NOT_FOUND)
        return _json(found)

    # --- all workers ---------------------------------------------------------------------

    def _all(self, request: Request) -> Response:
        """``workers``, each as it tells itself, and ``fleet`` as one of them sees it."""
        seen = _seen(request)
        if not _SEEN.fullmatch(seen):
            return Response.of_text("seen: not a list of ID.NUMBER", http.HTTPStatus.BAD_REQUEST)
        fleet = self._fleet_of(request.query.get("pid", ""), request.query.get("since", ""))
        if fleet.status != http.HTTPStatus.OK:
            return fleet
        answers = self._workers.ask(f"{PATH}/worker?seen={seen}")
        bodies = [
            each.body
            if each.status == http.HTTPStatus.OK
            else json.dumps({"pid": each.pid, "is_silent": True}).encode()
            for each in answers
        ]
        bodies = bodies or [self._this_worker(request).body]
        body = b'{"workers":[%s],"fleet":%s}' % (b",".join(bodies), fleet.body)
        return _packed(Response(body, JSON, headers=POLICY), request.headers)

    def _fleet_of(self, pid: str, since: str) -> Response:
        """Of the worker *pid*, or of this one if there is none such or it does not answer."""
        target = f"{PATH}/worker/fleet?{urllib.parse.urlencode({'since': since})}"
        found = self._elsewhere(pid, target)
        if found is not None and found.status == http.HTTPStatus.OK:
            return found
        return self._this_fleet(Request(PATH, query={"since": since}))

    def _decision(self, request: Request) -> Response:
        """``PID/ID.NUMBER``: one of a worker's list of decisions."""
        pid, _slash, name = request.rest.partition("/")
        found = self._elsewhere(pid, f"{PATH}/worker/decisions/{urllib.parse.quote(name, safe='')}")
        found = found or self._this_decision(Request(request.path, name))
        return _packed(found, request.headers)

    def _elsewhere(self, pid: str, target: str) -> Response | None:
        """The answer of another worker to *target*; None if *pid* names no other one."""
        if not (pid.isascii() and pid.isdigit()) or int(pid) not in self._others():
            return None
        answer = self._workers.ask_one(int(pid), target)
        if answer is None or answer.status is None:
            text = json.dumps({"error": f"worker {pid} does not answer"}).encode()
            return Response(text, JSON, http.HTTPStatus.GATEWAY_TIMEOUT, POLICY)
        return Response(answer.body, JSON, answer.status, POLICY)

    def _others(self) -> set[int]:
        return {*self._workers.pids} - {os.getpid()}


def _seen(request: Request) -> str:
    return request.query.get("seen", "")


def _read_files() -> Mapping[str, tuple[bytes, str, str]]:
    """By name the content, its type and the tag that tells it from every other."""
    found = {}
    for path in importlib.resources.files(__package__).joinpath("static").iterdir():
        content, kind = path.read_bytes(), path.name.rpartition(".")[2]
        if kind in _CONTENT_TYPES:
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            found[path.name] = (content, _CONTENT_TYPES[kind], tag)
    return found


def _json(document: dict[str, Any]) -> Response:
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return Response(text.encode(), JSON, headers=POLICY)


def _packed(response: Response, headers: Mapping[str, str]) -> Response:
    """*response* as it goes over the network: packed for whoever takes that."""
    is_taken = "gzip" in headers.get("accept-encoding", "")
    if not is_taken or len(response.body) < _WORTH_PACKING_BYTES:
        return response
    return Response(
        gzip.compress(response.body, _GZIP_LEVEL),
        response.content_type,
        response.status,
        {**response.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"},
    )
