"""The demo's judgement: a good outcome passes, and each way to go wrong is noticed."""

import dataclasses

import pytest

from conductor_stub.demo.scenario import (
    ACTIVE,
    ASKS,
    CHECKS,
    ERROR,
    REFUSED,
    UNLUCKY,
    Outcome,
    Server,
)

ZONES = {"h1": "az1", "h2": "az2", "h3": "az1"}


def a_server(name, flavor, **changes):
    server = Server(
        name=name, uuid=name, flavor=flavor, state=ACTIVE, host="h2", zone="az2", attempts=1,
        decision_ms=1.0, total_ms=2.0,
    )  # fmt: skip
    return dataclasses.replace(server, **changes)


def a_good_outcome():
    servers = {name: a_server(name, ask.flavor) for ask in ASKS for name in ask.names}
    for number in (1, 2, 3):
        servers[f"db-{number}"] = a_server(f"db-{number}", "m1.medium", host=f"h{number}")
    servers[UNLUCKY] = a_server(UNLUCKY, "m1.tiny", attempts=2)
    servers[REFUSED] = a_server(
        REFUSED, "demo.giant", state=ERROR, host=None,
        fault="No valid host was found. There are not enough hosts available.",
    )  # fmt: skip
    return Outcome(servers, ZONES, {"h1": 512}, {"h1": 512})


def failed(outcome):
    return [text for text, check in CHECKS if not check(outcome)]


def test_a_good_outcome_passes():
    assert failed(a_good_outcome()) == []


@pytest.mark.parametrize(
    ("name", "changes", "noticed"),
    [
        ("web-2", {"state": ERROR}, "every server is built"),
        (REFUSED, {"state": ACTIVE, "host": "h2"}, "every server is built"),
        ("db-1", {"host": "h2"}, "different hosts"),
        ("cache-1", {"host": "h1"}, "are in az2"),
        ("sidecar", {"host": "h1"}, "host of web-1"),
        (UNLUCKY, {"attempts": 1}, "second host"),
        (REFUSED, {"fault": "Internal error"}, "refused with a reason"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_way_to_go_wrong_is_noticed(name, changes, noticed):
    outcome = a_good_outcome()
    servers = {**outcome.servers, name: dataclasses.replace(outcome.servers[name], **changes)}
    texts = failed(dataclasses.replace(outcome, servers=servers))
    assert len(texts) == 1
    assert noticed in texts[0]


@pytest.mark.parametrize("summed", [{"h1": 513}, {}])
def test_books_that_do_not_match_are_noticed(summed):
    texts = failed(dataclasses.replace(a_good_outcome(), summed_mb=summed))
    assert len(texts) == 1
    assert "equals the sum" in texts[0]
