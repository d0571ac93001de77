"""Which function answers which path."""

from __future__ import annotations

import json

import pytest

from scheduler.web.server import Request, Response, Routes


def echo(name: str):
    def handler(request: Request) -> Response:
        return Response.of_json([name, request.path, request.rest, dict(request.query)])

    return handler


def broken(request: Request) -> Response:
    raise RuntimeError("out of order")


def busy(request: Request) -> Response:
    raise TimeoutError("the hub is slow")


@pytest.fixture
def routes() -> Routes:
    made = Routes()
    for path in ("/metrics", "/status", "/status/", "/status/decisions/"):
        made.add(path, echo(path))
    made.add("/broken", broken)
    made.add("/busy", busy)
    return made


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("/metrics", ["/metrics", "/metrics", "", {}]),
        ("/metrics?a=1&a=2&b=", ["/metrics", "/metrics", "", {"a": "2", "b": ""}]),
        ("/status", ["/status", "/status", "", {}]),
        ("/status/page.js", ["/status/", "/status/page.js", "page.js", {}]),
        (
            "/status/decisions/req%201",
            ["/status/decisions/", "/status/decisions/req 1", "req 1", {}],
        ),
    ],
)
def test_answered(routes: Routes, target: str, answer: list[object]) -> None:
    response = routes.answer("GET", target, {})
    assert (response.status, json.loads(response.body)) == (200, answer)


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        ("GET", "/metrics/", 404, "not found"),
        ("GET", "/nothing", 404, "not found"),
        ("GET", "", 404, "not found"),
        ("GET", "/broken", 500, "internal error"),
        ("GET", "/busy", 503, "busy"),
        ("POST", "/metrics", 405, "only GET and HEAD are answered"),
        ("DELETE", "/nothing", 405, "only GET and HEAD are answered"),
        ("HEAD", "/", 200, "/\n/broken\n/busy\n/metrics\n/status\n/status/\n/status/decisions/"),
    ],
)
def test_status(routes: Routes, method: str, target: str, status: int, body: str) -> None:
    response = routes.answer(method, target, {})
    assert (response.status, response.body.decode()) == (status, f"{body}\n")
