"""(levels of trust, level asked for) -> vouched for or not."""

from __future__ import annotations

import datetime

import pytest

from scheduler.filters.trusted_filter import TrustedFilter
from tests.builders import NOW, a_conf, a_fleet, a_host, a_request, candidates, verdict
from tests.servers import programs
from tests.servers.attestation import AttestationServer
from tests.servers.fixtures import require
from tests.servers.loopback_http import ADDRESS

OTHER = ["trusted.other"]
VTIME = datetime.datetime.fromtimestamp(NOW, datetime.UTC).isoformat()


@pytest.fixture
def server(tmp_path):
    require((programs.OPENSSL,))
    with AttestationServer(tmp_path) as running:
        yield running


@pytest.fixture
def trusted(server):
    conf = a_conf()
    conf.set_override("attestation_server", ADDRESS, group="trusted_computing")
    conf.set_override("attestation_port", str(server.port), group="trusted_computing")
    conf.set_override(
        "attestation_server_ca_file", str(server.certificate), group="trusted_computing"
    )
    return TrustedFilter(conf)


def demanding(level):
    specs = {} if level is None else {"trust:trusted_host": level}
    return a_request(flavor={"extra_specs": specs})


@pytest.mark.parametrize(
    ("level", "demanded", "reasons", "polls"),
    [
        pytest.param("untrusted", None, [], 0, id="nothing demanded"),
        pytest.param("untrusted", "", [], 0, id="nothing demanded, in so many words"),
        pytest.param("trusted", "trusted", [], 1, id="trusted"),
        pytest.param("untrusted", "trusted", OTHER, 1, id="untrusted"),
        pytest.param("untrusted", "untrusted", [], 1, id="untrusted on purpose"),
        pytest.param("trusted", "Trusted", OTHER, 1, id="levels have a case"),
        pytest.param(None, "trusted", OTHER, 1, id="no answer"),
        pytest.param(None, "unknown", [], 1, id="no answer wanted"),
    ],
)
def test_the_level_decides(server, trusted, level, demanded, reasons, polls):
    entries = [{"host_name": "n1", "trust_lvl": level, "vtime": VTIME}]
    server.answer = {"hosts": [] if level is None else entries}

    assert verdict(trusted, a_host(), demanding(demanded)) == reasons
    assert len(server.polls) == polls


def test_all_nodes_are_asked_about_at_once(server, trusted):
    hosts = candidates(a_fleet({}, {}, {}))
    entries = [
        {"host_name": node, "trust_lvl": level, "vtime": VTIME}
        for node, level in (("n1", "trusted"), ("n2", "untrusted"), ("n3", "trusted"))
    ]
    server.answer = {"hosts": entries}

    [(_reason, mask)] = trusted.conditions(hosts.take([0, 1]), demanding("trusted"))
    [(_reason, again)] = trusted.conditions(hosts.take([2]), demanding("trusted"))

    assert (mask.tolist(), again.tolist()) == ([True, False], [True])
    assert [poll["body"] for poll in server.polls] == [{"count": 3, "hosts": ["n1", "n2", "n3"]}]
