"""Routes of the status page: for all workers, below ``/status/worker`` for this one."""

import http
import importlib.resources
import json
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler.concurrency import HubCalls
from scheduler.status_page.live import LiveStatus
from scheduler.web.server import JSON, Request, Response, Routes
from scheduler.web.workers import Answer, Workers

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
SILENT: Final = Response(
    b'{"error":"a worker does not answer"}', JSON, http.HTTPStatus.GATEWAY_TIMEOUT, POLICY
)
_SEEN: Final = re.compile(r"[0-9a-f.,]*", re.ASCII)


class StatusPage:
    """Answers from *live*, None while this worker starts, and those of the other *workers*."""

    def __init__(
        self, workers: Workers, hub: HubCalls, live: Callable[[], LiveStatus | None]
    ) -> None:
        self._live = live
        self._workers = workers
        self._hub = hub
        self._files = _read_files()

    def add_to(self, routes: Routes) -> None:
        for path, handler in {
            "": lambda _asked: self._files["status.html"],
            "/": self._file,
            "/live": self._all,
            "/decisions/": self._decision,
            "/hosts/": self._host,
            "/worker": lambda asked: self._this(LiveStatus.worker, asked.query.get("seen", "")),
            "/worker/fleet": lambda asked: self._this(
                LiveStatus.fleet, asked.query.get("since", "")
            ),
            "/worker/decisions/": lambda asked: self._this(LiveStatus.decision, asked.rest),
            "/worker/hosts/": lambda asked: self._this(LiveStatus.host, asked.rest),
        }.items():
            routes.add(f"{PATH}{path}", handler)

    def _file(self, request: Request) -> Response:
        if not request.rest:
            to_page = {**POLICY, "Location": f"..{PATH}"}
            return Response(b"", status=http.HTTPStatus.PERMANENT_REDIRECT, headers=to_page)
        not_there = Response.of_text("not found", http.HTTPStatus.NOT_FOUND)
        return self._files.get(request.rest, not_there)

    def _this(self, ask: Callable[[LiveStatus, str], Any], argument: str) -> Response:
        live = self._live()
        if live is None:
            return STARTING
        found = self._hub.call(ask, live, argument)
        if found is None:
            return Response.of_json({"error": "not known here"}, http.HTTPStatus.NOT_FOUND)
        text = json.dumps(found, separators=(",", ":"), allow_nan=False)
        return Response(text.encode(), JSON, headers=POLICY)

    def _all(self, request: Request) -> Response:
        """``workers``, each as it tells itself, and ``fleet`` as one of them sees it.

        That is the one asked for by ``pid``, or this one if there is none such that answers.
        """
        seen, since, pid = (request.query.get(name, "") for name in ("seen", "since", "pid"))
        if not _SEEN.fullmatch(seen):
            return Response.of_text("seen: not a list of ID.NUMBER", http.HTTPStatus.BAD_REQUEST)
        target = f"{PATH}/worker/fleet?{urllib.parse.urlencode({'since': since})}"
        pids = {str(each): each for each in self._workers.pids}
        fleet: Answer | Response | None = None
        if pid in pids:
            fleet = self._workers.ask_one(pids[pid], target)
        if fleet is None or fleet.status != http.HTTPStatus.OK:
            fleet = own = self._this(LiveStatus.fleet, since)
            if own.status != http.HTTPStatus.OK:
                return own
        bodies = [
            each.body
            if each.status == http.HTTPStatus.OK
            else json.dumps({"pid": each.pid, "is_silent": True}).encode()
            for each in self._workers.ask(f"{PATH}/worker?seen={seen}")
        ]
        body = b'{"workers":[%s],"fleet":%s}' % (b",".join(bodies), fleet.body)
        return Response(body, JSON, headers=POLICY)

    def _decision(self, request: Request) -> Response:
        """``ID.NUMBER``, or the latest on a request or instance: of any worker, or recorded."""
        answers = self._everywhere("decisions", request.rest)
        for each in answers:
            if each.status == http.HTTPStatus.OK:
                return Response(each.body, JSON, headers=POLICY)
        recorded = self._this(LiveStatus.recorded, request.rest)
        is_sure = all(each.status is not None for each in answers)
        return recorded if is_sure or recorded.status != http.HTTPStatus.NOT_FOUND else SILENT

    def _host(self, request: Request) -> Response:
        """``workers``: one host as each worker has it, with the decisions that it keeps."""
        answers = self._everywhere("hosts", request.rest)
        bodies = [each.body for each in answers if each.status == http.HTTPStatus.OK]
        if not bodies:
            return self._this(LiveStatus.host, request.rest)
        return Response(b'{"workers":[%s]}' % b",".join(bodies), JSON, headers=POLICY)

    def _everywhere(self, what: str, name: str) -> list[Answer]:
        return self._workers.ask(f"{PATH}/worker/{what}/{urllib.parse.quote(name, safe='')}")


def _read_files() -> Mapping[str, Response]:
    found = {}
    for path in importlib.resources.files(__package__).joinpath("static").iterdir():
        kind = path.name.rpartition(".")[2]
        if kind in _CONTENT_TYPES:
            found[path.name] = Response(path.read_bytes(), _CONTENT_TYPES[kind], headers=POLICY)
    return found
