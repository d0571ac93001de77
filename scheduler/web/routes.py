"""Routes of the HTTP server: a visible list of paths, each with a function.

Only GET and HEAD exist: nothing can be changed from here.
"""

from __future__ import annotations

import http
import json
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
METHODS: Final = ("GET", "HEAD")


@dataclass(frozen=True)
class Request:
    """Request for one path.

    *rest* is what follows the path of a route that ends in ``/``; *query* keeps the last of
    several values of a name; the names in *headers* are in lower case.
    """

    path: str
    rest: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """Response to one request."""

    body: bytes
    content_type: str = TEXT
    status: int = http.HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_text(cls, text: str, status: int = http.HTTPStatus.OK, **headers: str) -> Response:
        """*text* and a line end."""
        return cls(f"{text}\n".encode(), TEXT, status, headers)

    @classmethod
    def of_json(cls, document: Any, status: int = http.HTTPStatus.OK) -> Response:
        """*document* as JSON."""
        return cls(json.dumps(document).encode(), JSON, status)


Handler = Callable[[Request], Response]


class Routes:
    """Paths and what answers them."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {"/": self._index}

    def add(self, path: str, handler: Handler) -> None:
        """Let *handler* answer *path*; one that ends in ``/``, also everything below it.

        The longest path that fits answers.
        """
        self._handlers[path] = handler

    def answer(self, method: str, target: str, headers: Mapping[str, str]) -> Response:
        """The answer to one request; never raises."""
        if method not in METHODS:
            status, allowed = http.HTTPStatus.METHOD_NOT_ALLOWED, ", ".join(METHODS)
            return Response.of_text("only GET and HEAD are answered", status, Allow=allowed)
        split = urllib.parse.urlsplit(target)
        path = urllib.parse.unquote(split.path)
        place = self._place(path)
        if place is None:
            return Response.of_text("not found", http.HTTPStatus.NOT_FOUND)
        query = dict(urllib.parse.parse_qsl(split.query, keep_blank_values=True))
        asked = Request(path, path[len(place) :], query, headers)
        try:
            return self._handlers[place](asked)
        except TimeoutError as error:
            LOG.debug("%s: %s", place, error)
            return Response.of_text("busy", http.HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            LOG.exception("%s could not be answered", place)
            return Response.of_text("internal error", http.HTTPStatus.INTERNAL_SERVER_ERROR)

    def _place(self, path: str) -> str | None:
        if path in self._handlers:
            return path
        above = [each for each in self._handlers if each != "/" and each.endswith("/")]
        return max((each for each in above if path.startswith(each)), key=len, default=None)

    def _index(self, request: Request) -> Response:
        del request
        return Response.of_text("\n".join(sorted(self._handlers)))
