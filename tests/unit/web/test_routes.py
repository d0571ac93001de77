"""Which function answers which path."""

from __future__ import annotations

import json

import pytest

from scheduler.web.routes import Request, Response, Routes


def echo(name: str):
    def handler(request: Request) -> Response:
        return Response.of_json([name, request.path, request.rest, dict(request.query)])

    return handler


def broken(request: Request) -> Response:
    raise RuntimeError("out of order")


@pytest.fixture
def routes() -> Routes:
    made = Routes()
    for path in ("/metrics", "/status", "/status/", "/status/decisions/"):
        made.add(path, echo(path))
    made.add("/broken", broken)
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
    ("method", "target", "status"),
    [
        ("GET", "/metrics/", 404),
        ("GET", "/nothing", 404),
        ("GET", "", 404),
        ("GET", "/broken", 500),
        ("HEAD", "/metrics", 200),
        ("POST", "/metrics", 405),
        ("DELETE", "/nothing", 405),
    ],
)
def test_status(routes: Routes, method: str, target: str, status: int) -> None:
    assert routes.answer(method, target, {}).status == status


def test_what_is_wrong_inside_stays_inside(routes: Routes) -> None:
    assert routes.answer("GET", "/broken", {}).body == b"internal error\n"


def test_index(routes: Routes) -> None:
    lines = routes.answer("GET", "/", {}).body.decode().split()
    assert lines == ["/", "/broken", "/metrics", "/status", "/status/", "/status/decisions/"]
