"""(answer of an attestation server, clock) -> what is known of the nodes."""

from __future__ import annotations

import datetime
import logging

import pytest

from scheduler.filters import attestation
from scheduler.filters.attestation import AttestationService, Trust, TrustCache
from tests.builders import a_conf
from tests.servers import programs
from tests.servers.attestation import AttestationServer
from tests.servers.fixtures import require
from tests.servers.loopback_http import ADDRESS

TIME = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC).timestamp()
NODES = {"n1", "n2"}


def entry(node, level="trusted", vtime="2026-11-21T00:00:00Z"):
    return {"host_name": node, "trust_lvl": level, "vtime": vtime}


@pytest.fixture
def server(tmp_path):
    require((programs.OPENSSL,))
    with AttestationServer(tmp_path) as running:
        yield running


def service_of(server, **options):
    conf = a_conf()
    values = {
        "attestation_server": ADDRESS,
        "attestation_port": str(server.port),
        "attestation_server_ca_file": str(server.certificate),
        **options,
    }
    for name, value in values.items():
        conf.set_override(name, value, group="trusted_computing")
    return AttestationService(conf.trusted_computing)


def test_a_poll_on_the_wire(server):
    server.answer = {"hosts": [entry("n1"), entry("n2", "untrusted"), entry("n9")]}

    found = service_of(server, attestation_auth_blob="secret").poll(NODES, TIME)

    assert found == {
        "n1": Trust("trusted", TIME),
        "n2": Trust("untrusted", TIME),
        "n9": Trust("trusted", TIME),
    }
    [poll] = server.polls
    assert poll["path"] == "/OpenAttestationWebServices/V1.0/PollHosts"
    assert poll["body"] == {"count": 2, "hosts": ["n1", "n2"]}
    assert poll["headers"]["content-type"] == "application/json"
    assert poll["headers"]["accept"] == "application/json"
    assert poll["headers"]["x-auth-blob"] == "secret"


def test_without_a_blob_there_is_no_header(server):
    service_of(server).poll(NODES, TIME)

    assert "x-auth-blob" not in server.polls[0]["headers"]


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_statuses_of_success(server, status):
    server.status, server.answer = status, {"hosts": [entry("n1")]}

    found = service_of(server).poll(NODES, TIME)

    # An answer without content has no body that could be read.
    assert found == ({} if status == 204 else {"n1": Trust("trusted", TIME)})


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (500, {"hosts": [entry("n1")]}),
        (404, {"hosts": [entry("n1")]}),
        (200, "not json"),
        (200, []),
        (200, {}),
        (200, {"hosts": [{"host_name": "n1"}]}),
        (200, {"hosts": [entry("n1", vtime=None)]}),
        (200, {"hosts": ["n1"]}),
    ],
)
def test_answers_that_are_none(server, status, answer, caplog):
    server.status, server.answer = status, answer

    with caplog.at_level(logging.WARNING):
        assert service_of(server).poll(NODES, TIME) == {}
    assert "attestation server" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"attestation_server_ca_file": None}, id="the system's authorities"),
        pytest.param({"attestation_insecure_ssl": True}, id="insecure still checks"),
    ],
)
def test_a_certificate_that_nobody_known_signed(server, options):
    server.answer = {"hosts": [entry("n1")]}

    assert service_of(server, **options).poll(NODES, TIME) == {}
    assert server.polls == []


def test_a_server_that_is_not_there(server, caplog):
    service = service_of(server, attestation_port="1")

    with caplog.at_level(logging.WARNING):
        assert service.poll(NODES, TIME) == {}
    assert "cannot be asked" in caplog.text


def test_a_server_that_does_not_answer_in_time(server, monkeypatch):
    monkeypatch.setattr(attestation, "ANSWER_SECONDS", 0.000001)

    assert service_of(server).poll(NODES, TIME) == {}


def test_no_server_at_all(caplog):
    service = AttestationService(a_conf().trusted_computing)

    with caplog.at_level(logging.WARNING):
        assert service.poll(NODES, TIME) == {}
    assert "attestation_server is unset" in caplog.text


@pytest.mark.parametrize(
    ("vtime", "trust"),
    [
        ("2026-11-21T00:00:00Z", Trust("trusted", TIME)),
        ("2026-11-21T01:00:00+01:00", Trust("trusted", TIME)),
        ("2026-11-20T23:59:00", Trust("trusted", TIME - 60)),
        ("Sat Nov 21 00:00:00 2026", Trust("trusted", TIME)),
        ("garbage", Trust("unknown", TIME + 5)),
        ("", Trust("unknown", TIME + 5)),
    ],
)
def test_times_of_entries(vtime, trust):
    assert attestation.read_entries([entry("n1", vtime=vtime)], TIME + 5) == {"n1": trust}


class Scripted(AttestationService):
    """Answers every poll alike, without a server."""

    def __init__(self, *entries):
        self.entries = entries
        self.polled = []

    def poll(self, nodes, now):
        self.polled.append(sorted(nodes))
        return attestation.read_entries(self.entries, now)


def stamped(seconds):
    when = datetime.datetime.fromtimestamp(TIME + seconds, datetime.UTC)
    return when.isoformat()


@pytest.mark.parametrize(
    ("age", "lifetime", "polls"),
    [
        pytest.param(0, 60, 1, id="fresh"),
        pytest.param(-60, 60, 1, id="just good enough"),
        pytest.param(-61, 60, 3, id="too old"),
        pytest.param(1000, 60, 1, id="from the future"),
        pytest.param(0, 1, 1, id="for a second"),
        pytest.param(-2, 1, 3, id="for a second, and that is over"),
        pytest.param(0, 0, 3, id="never remembered"),
        pytest.param(0, -1, 3, id="never remembered, less than nothing"),
    ],
)
def test_answers_last_by_the_servers_clock(age, lifetime, polls):
    service = Scripted(entry("n1", vtime=stamped(age)))
    cache = TrustCache(service, lifetime)

    for _check in range(3):
        assert cache.of({"n1"}, NODES, TIME) == {"n1": "trusted"}

    assert service.polled == [["n1", "n2"]] * polls


def test_a_negative_result_is_remembered():
    service = Scripted(entry("n1", vtime="garbage"))
    cache = TrustCache(service, 60)

    assert [cache.of({"n1"}, {"n1"}, TIME)["n1"] for _check in range(2)] == ["unknown"] * 2
    assert len(service.polled) == 1


def test_one_unknown_node_asks_about_all_anew():
    service = Scripted(entry("n1"))
    cache = TrustCache(service, 60)
    cache.of({"n1"}, {"n1"}, TIME)
    service.entries = (entry("n2"),)

    assert cache.of({"n1", "n2"}, NODES, TIME) == {"n1": "unknown", "n2": "trusted"}
    assert service.polled == [["n1"], ["n1", "n2"]]


def test_a_failed_poll_leaves_nothing_known():
    service = Scripted()

    assert TrustCache(service, 60).of(NODES, NODES, TIME) == {"n1": "unknown", "n2": "unknown"}
