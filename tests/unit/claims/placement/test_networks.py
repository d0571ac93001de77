"""What Neutron and Placement answer about networks -> the aggregates that hosts must be in."""

import pytest
from keystoneauth1.exceptions import ConnectFailure

from scheduler import errors, objects
from scheduler.claims.placement.candidates import CandidateQuery, Fleet
from scheduler.claims.placement.client import PlacementClient, Requester, Unavailable
from tests.builders import a_conf, a_request
from tests.servers.loopback_http import ReplayServer

NETWORK, PORT, SUBNET = (f"00000000-0000-4000-8000-00000000000{n}" for n in range(1, 4))
ON_NETWORK = objects.NetworkRequest(network_id=NETWORK)
WITH_PORT = objects.NetworkRequest(network_id=None, port_id=PORT)
BOUND = (200, {"port": {"network_id": NETWORK, "fixed_ips": [{"subnet_id": SUBNET}]}})
UNBOUND = (200, {"port": {"network_id": NETWORK, "fixed_ips": []}})
SUBNETS = (200, {"subnets": [{"segment_id": "s1"}, {"segment_id": None}, {"segment_id": "s2"}, {}]})
NO_SEGMENT = (200, {"subnets": [{"name": "flat"}]})
NONE, GONE, MISSING = (200, {"aggregates": []}), (503, {}), (404, {})
OTHER_FORM = "the answers of Neutron have not the expected form: "
OF_SUBNET, OF_NETWORK = f"Aggregates not found for the subnet {SUBNET}", f"the network {NETWORK}"
FIND_SUBNETS, FIND_PORT = f"/v2.0/subnets?network_id={NETWORK}", f"/v2.0/ports/{PORT}"


def on_segment(name):
    return 200, {"subnet": {"segment_id": name}}


def aggregates(*names):
    return 200, {"aggregates": list(names)}


def ask(networks, answers):
    """What comes out, and the paths of the calls; one server is both services."""
    with ReplayServer(answers) as server:
        conf = a_conf(scheduler__query_placement_for_routed_network_aggregates=True)
        for group in ("placement", "neutron"):
            conf.set_override("auth_type", "none", group=group)
            conf.set_override("endpoint_override", server.endpoint, group=group)
        spec = a_request(requested_networks=objects.NetworkRequestList(objects=networks))
        query = CandidateQuery(conf, PlacementClient.from_conf(conf))
        requester = Requester("p", "u", "req-1", 1e9).within(60)
        try:
            found = query.segments(spec, requester)
            (wish,) = query.wishes(spec, Fleet((), 0, None), found)
            assert wish.groups[0].aggregates == found
            assert wish.is_plain is (not found)
        except (errors.NovaException, ConnectFailure, Unavailable) as error:
            found = error
        assert not server.answers
        return found, [path for _method, path, *_ in server.calls], requester.calls


@pytest.mark.parametrize(
    ("networks", "answers", "found"),
    [
        pytest.param([], [], [], id="none is asked for"),
        pytest.param([objects.NetworkRequest(network_id=None)], [], [], id="no id"),
        pytest.param([ON_NETWORK], [NO_SEGMENT], [], id="not routed"),
        pytest.param(
            [ON_NETWORK],
            [SUBNETS, aggregates("b"), aggregates("a", "b")],
            [["a", "b"]],
            id="any segment of the network",
        ),
        pytest.param(
            [WITH_PORT], [BOUND, on_segment("s1"), aggregates("a")], [["a"]], id="the port's own"
        ),
        pytest.param([WITH_PORT], [BOUND, on_segment(None)], [], id="a port that is not routed"),
        pytest.param(
            [WITH_PORT],
            [UNBOUND, SUBNETS, aggregates("a"), aggregates("b")],
            [["a", "b"]],
            id="a port without an address yet",
        ),
        pytest.param(
            [WITH_PORT, ON_NETWORK],
            [BOUND, on_segment("s1"), aggregates("a"), NO_SEGMENT],
            [["a"]],
            id="each network by itself",
        ),
    ],
)
def test_aggregates_of_segments_are_demanded(networks, answers, found):
    given, paths, counted = ask(networks, answers)
    assert given == found
    assert len(paths) == len(answers)
    assert len(counted) == sum("aggregates" in answer for _status, answer in answers)


@pytest.mark.parametrize(
    ("network", "answers", "kind", "text"),
    [
        (WITH_PORT, [BOUND, on_segment("s1"), NONE], errors.NoValidHost, OF_SUBNET),
        (WITH_PORT, [BOUND, on_segment("s1"), MISSING], errors.NoValidHost, OF_SUBNET),
        (WITH_PORT, [BOUND, MISSING], errors.NoValidHost, OF_SUBNET),
        (ON_NETWORK, [SUBNETS, aggregates("a"), NONE], errors.NoValidHost, OF_NETWORK),
        (ON_NETWORK, [MISSING], errors.NoValidHost, OF_NETWORK),
        (ON_NETWORK, [GONE] * 4, errors.NovaException, "Connection to neutron failed: HTTP 503"),
        (WITH_PORT, [GONE] * 4, errors.NovaException, f"Failed to access port {PORT}: HTTP 503"),
        (ON_NETWORK, [None] * 4, ConnectFailure, "connection"),
        (WITH_PORT, [None] * 4, ConnectFailure, "connection"),
        (WITH_PORT, [MISSING], errors.NovaException, f"Failed to access port {PORT}: HTTP 404"),
        (WITH_PORT, [(200, {})], errors.NovaException, f"{PORT}: {OTHER_FORM}KeyError('port')"),
        (ON_NETWORK, [(200, {})], errors.NovaException, f"{OTHER_FORM}KeyError('subnets')"),
        (ON_NETWORK, [(200, b"<h1>")], errors.NovaException, "failed: the answer is not JSON"),
        (ON_NETWORK, [SUBNETS, (200, {"aggregates": 5})], Unavailable, "the aggregates have not"),
    ],
)
def test_a_request_fails_where_its_segments_cannot_be_known(network, answers, kind, text):
    error, paths, _counted = ask([network], answers)
    assert type(error) is kind
    assert text in str(error)
    assert paths[0] == (FIND_SUBNETS if network is ON_NETWORK else FIND_PORT)


def test_neutron_must_be_configured_only_where_it_is_asked():
    conf = a_conf()
    CandidateQuery(conf, None)
    conf.set_override("query_placement_for_routed_network_aggregates", True, group="scheduler")
    with pytest.raises(errors.ConfigurationError, match=r"\[neutron\] auth_type.*routed_network"):
        CandidateQuery(conf, None)
