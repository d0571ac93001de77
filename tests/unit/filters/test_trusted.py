"""(answer of an attestation server, clock) -> trust in nodes, and what TrustedFilter says."""

import datetime
import logging

import pytest

from scheduler.filters import trusted_filter
from scheduler.filters.trusted_filter import AttestationService, Trust, TrustedFilter
from tests.builders import NOW, a_conf, a_fleet, a_host, a_request, candidates, verdict
from tests.servers.certificates import NAME
from tests.servers.loopback_http import AttestationServer
from tests.unit.filters.judging import rows

NODES = {"n1", "n2"}


def stamped(seconds):
    return datetime.datetime.fromtimestamp(NOW + seconds, datetime.UTC).isoformat()


def entry(node, level="trusted", vtime=None):
    return {"host_name": node, "trust_lvl": level, "vtime": vtime or stamped(0)}


@pytest.fixture
def server(tmp_path, authority):
    with AttestationServer(tmp_path, authority) as running:
        yield running


def a_conf_for(server, **options):
    values = {
        "attestation_server": NAME,
        "attestation_port": str(server.port),
        "attestation_server_ca_file": str(server.authority),
        **options,
    }
    return a_conf(**{f"trusted_computing__{name}": value for name, value in values.items()})


def poll(server, **options):
    return AttestationService(a_conf_for(server, **options).trusted_computing).poll(NODES, NOW)


def test_a_poll_on_the_wire(server):
    server.answer = {"hosts": [entry("n1"), entry("n2", "untrusted"), entry("n9")]}

    found = poll(server, attestation_auth_blob="secret")

    levels = {"n1": "trusted", "n2": "untrusted", "n9": "trusted"}
    assert found == {node: Trust(level, NOW) for node, level in levels.items()}
    [sent] = server.polls
    assert sent["path"] == "/OpenAttestationWebServices/V1.0/PollHosts"
    assert sent["body"] == {"count": 2, "hosts": ["n1", "n2"]}
    expected = {"content-type": "application/json", "accept": "application/json"}
    assert {**sent["headers"], **expected, "x-auth-blob": "secret"} == sent["headers"]
    poll(server)
    assert "x-auth-blob" not in server.polls[1]["headers"]


@pytest.mark.parametrize(
    ("status", "answer", "understood"),
    [
        *[(status, {"hosts": [entry("n1")]}, True) for status in (200, 201, 202)],
        *[(status, {"hosts": [entry("n1")]}, False) for status in (204, 404, 500)],
        *[(200, answer, False) for answer in ("not json", [], {}, {"hosts": ["n1"]})],
        (200, {"hosts": [{"host_name": "n1"}]}, False),
        (200, {"hosts": [{**entry("n1"), "vtime": None}]}, False),
    ],
)
def test_answers(server, status, answer, understood, caplog):
    """One of status 204 has no body that could be read."""
    server.status, server.answer = status, answer
    with caplog.at_level(logging.WARNING):
        assert poll(server) == ({"n1": Trust("trusted", NOW)} if understood else {})
    assert ("attestation server" in caplog.text) is not understood


@pytest.mark.parametrize(
    ("options", "logged"),
    rows(
        ("the system's authorities", {"attestation_server_ca_file": None}, "cannot be asked"),
        ("insecure still checks", {"attestation_insecure_ssl": True}, "cannot be asked"),
        ("not there", {"attestation_port": "1"}, "cannot be asked"),
        ("none at all", {"attestation_server": None}, "attestation_server is unset"),
    ),
)
def test_a_server_that_cannot_be_asked(server, options, logged, caplog):
    server.answer = {"hosts": [entry("n1")]}

    with caplog.at_level(logging.WARNING):
        assert poll(server, **options) == {}
    assert server.polls == []
    assert logged in caplog.text


@pytest.mark.parametrize(
    ("vtime", "trust"),
    [
        ("2027-01-15T09:00:00+01:00", Trust("trusted", NOW)),
        ("2027-01-15T07:59:00", Trust("trusted", NOW - 60)),
        ("Fri Jan 15 08:00:00 2027", Trust("trusted", NOW)),
        ("garbage", Trust("unknown", NOW + 5)),
    ],
)
def test_times_of_entries(vtime, trust):
    answer = [{**entry("n1"), "vtime": vtime}]

    assert trusted_filter.read_entries(answer, NOW + 5) == {"n1": trust}


class Scripted(AttestationService):
    """Answers every poll alike, without a server."""

    def __init__(self, lifetime, *entries):
        conf = a_conf(trusted_computing__attestation_auth_timeout=lifetime)
        super().__init__(conf.trusted_computing)
        self.entries = entries
        self.polled = []

    def poll(self, nodes, now):
        self.polled.append(sorted(nodes))
        return trusted_filter.read_entries(self.entries, now)


@pytest.mark.parametrize(
    ("age", "lifetime", "polls"),
    rows(
        ("fresh", 0, 60, 1),
        ("just good enough", -60, 60, 1),
        ("too old", -61, 60, 3),
        ("from the future", 1000, 60, 1),
        ("never remembered", 0, 0, 3),
        ("never remembered, less than nothing", 0, -1, 3),
    ),
)
def test_answers_last_by_the_servers_clock(age, lifetime, polls):
    service = Scripted(lifetime, entry("n1", vtime=stamped(age)))

    for _check in range(3):
        assert service.levels({"n1"}, NODES, NOW) == {"n1": "trusted"}

    assert service.polled == [["n1", "n2"]] * polls


def test_one_unknown_node_asks_about_all_anew():
    service = Scripted(60, entry("n1"))
    service.levels({"n1"}, {"n1"}, NOW)
    service.entries = (entry("n2"),)
    assert service.levels({"n1", "n2"}, NODES, NOW) == {"n1": "unknown", "n2": "trusted"}
    service.entries = ()
    assert service.levels(NODES, NODES, NOW) == {"n1": "unknown", "n2": "unknown"}, "none answers"
    assert service.polled == [["n1"], *[["n1", "n2"]] * 2]


def demanding(level):
    specs = {} if level is None else {"trust:trusted_host": level}
    return a_request(flavor={"extra_specs": specs})


@pytest.mark.parametrize(
    ("level", "demanded", "reasons", "polls"),
    rows(
        ("nothing demanded", "untrusted", None, [], 0),
        ("trusted", "trusted", "trusted", [], 1),
        ("untrusted", "untrusted", "trusted", ["trusted.other"], 1),
        ("untrusted on purpose", "untrusted", "untrusted", [], 1),
        ("levels have a case", "trusted", "Trusted", ["trusted.other"], 1),
        ("no answer", None, "trusted", ["trusted.other"], 1),
        ("no answer wanted", None, "unknown", [], 1),
    ),
)
def test_the_level_decides(server, level, demanded, reasons, polls):
    server.answer = {"hosts": [] if level is None else [entry("n1", level)]}

    assert verdict(TrustedFilter(a_conf_for(server)), a_host(), demanding(demanded)) == reasons
    assert len(server.polls) == polls


def test_all_nodes_are_asked_about_at_once(server):
    hosts = candidates(a_fleet({}, {}, {}))
    trusted = TrustedFilter(a_conf_for(server))
    server.answer = {"hosts": [entry("n1"), entry("n2", "untrusted"), entry("n3")]}

    [(_reason, mask)] = trusted.conditions(hosts.take([0, 1]), demanding("trusted"))
    [(_reason, again)] = trusted.conditions(hosts.take([2]), demanding("trusted"))

    assert (mask.tolist(), again.tolist()) == ([True, False], [True])
    assert [poll["body"] for poll in server.polls] == [{"count": 3, "hosts": ["n1", "n2", "n3"]}]
