"""What goes over HTTP to Placement, held against what Nova's own programs said to one."""

import contextlib
import json
import time
from types import SimpleNamespace

import pytest
from keystoneauth1 import loading

from conductor_stub.alternates import PlacementAlternates
from scheduler import errors, objects
from scheduler.claims.placement.backend import PlacementClaims
from scheduler.claims.placement.candidates import CandidateQuery
from scheduler.claims.placement.client import (
    ATTEMPTS,
    LONGEST_PAUSE_SECONDS,
    PlacementClient,
    Requester,
    Unavailable,
)
from scheduler.drivers import load
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.reservations import Reservations
from tests.builders import NOW, a_conf, a_fleet, a_request
from tests.servers.loopback_http import DRIPPING, SILENCE, ReplayServer
from tests.unit.objects import wire_samples

CONSUMER = "f4a0f8c0-0000-4000-8000-000000000001"
ZONE = "4a8e1f2d-0000-4000-8000-0000000000a1"
PROVIDER = "c0000001-aaaa-4bbb-8ccc-000000000001"
HEADERS = (
    "accept",
    "openstack-api-version",
    "x-auth-token",
    "x-openstack-request-id",
    "content-type",
)
CONCURRENT = {"errors": [{"code": "placement.concurrent_update", "detail": "provider changed"}]}
CONSUMER_CHANGED = {
    "errors": [
        {"code": "placement.concurrent_update", "detail": "consumer generation conflict - expected"}
    ]
}
FULL = {"errors": [{"code": "placement.undefined_code", "detail": "no capacity"}]}
NOTHING = (200, {"allocations": {}})
REQUESTER = Requester("p", "u", "req-1", 1e9)


@contextlib.contextmanager
def a_placement(*answers):
    with ReplayServer(answers) as server:
        conf = a_conf(
            placement__auth_type="noauth",
            placement__endpoint_override=server.endpoint,
            scheduler__placement_query="fleet",
        )
        yield server, conf


def allocating(conf):
    pauses = []
    return PlacementClient.from_conf(conf, pauses.append), pauses


def request_of(sample):
    """The sender and the request that the sample belongs to."""
    message = wire_samples.load("select_destinations-simple.request")
    spec = objects.from_primitive(message["args"]["spec_obj"])
    request_id = sample[0]["headers"]["X-Openstack-Request-Id"]
    return SimpleNamespace(request_id=request_id, global_request_id=None), spec


def exchanges(name):
    return wire_samples.load(name)["http"]


def hold(calls, sample):
    """Every call must be that of the sample: method, path, query, headers and body."""
    assert len(calls) == len(sample)
    for (method, path, headers, body), wanted in zip(calls, sample, strict=True):
        assert (method, path) == (wanted["method"], wanted["path"])
        expected = {name.lower(): value for name, value in wanted["headers"].items()}
        found = {name: headers[name] for name in HEADERS if name in headers}
        assert found == expected
        assert body == wanted["request_body"]


def answers_of(sample):
    return [(each["status"], each["response_body"]) for each in sample]


def a_driver(conf, sample, pause=time.sleep):
    """A filter driver that knows the two nodes of the sample, and its zone."""
    providers = sample[0]["response_body"]["provider_summaries"]
    ready = {"cell_uuid": ZONE, "total_usable_ram_mb": 9999, "free_ram_mb": 9999}
    hosts = [{**ready, "uuid": each, "service": {"version": 74}} for each in providers]
    table = a_fleet(*hosts)
    zone = objects.Aggregate(id=1, uuid=ZONE, name="z", metadata={"availability_zone": "az-east"})
    manager = SimpleNamespace(
        table=table,
        reservations=Reservations(table),
        lock=contextlib.nullcontext(),
        clock=lambda: NOW,
        refresh=lambda arrived_at=None: None,
        read_at=NOW,
        state_fresh_seconds=0,
        cells_left_out=(),
        aggregates=[zone],
        option_of_filters=HostManager.option_of_filters,
    )
    conf.set_override("enabled_filters", ["RamFilter"], group="filter_scheduler")
    claims = PlacementClaims(conf, PlacementClient.from_conf(conf, pause), manager)
    claims.prepare()
    return load(conf, manager, claims=claims)


def test_a_request_makes_the_calls_that_nova_makes():
    sample = exchanges("placement-simple.http")
    with a_placement(*answers_of(sample)) as (server, conf):
        context, spec = request_of(sample)
        ((chosen, other),) = a_driver(conf, sample).select_destinations(
            context, spec, [CONSUMER], return_alternates=True
        )
        hold(server.calls, sample)
    requests = sample[0]["response_body"]["allocation_requests"]
    assert json.loads(chosen.allocation_request) == requests[0]
    assert json.loads(other.allocation_request) == requests[1]
    assert chosen.allocation_request_version == other.allocation_request_version == "1.36"


@pytest.mark.parametrize(
    "name", ["placement-conductor_claim.http", "placement-conflict_retry.http"]
)
def test_an_alternate_makes_the_calls_that_nova_makes(name):
    sample = exchanges(name)
    wanted = sample[1]["request_body"]
    request = {key: wanted[key] for key in ("allocations", "mappings")}
    selection = objects.Selection(
        allocation_request=json.dumps(request), allocation_request_version="1.36"
    )
    with a_placement(*answers_of(sample)) as (server, conf):
        context, spec = request_of(sample)
        made, pauses = allocating(conf)
        assert PlacementAlternates(made).claim(context, spec, CONSUMER, selection)
        hold(server.calls, sample)
    assert len(pauses) == len(sample) // 2


REQUEST = {"allocations": {PROVIDER: {"resources": {"VCPU": 1}}}, "mappings": {"": [PROVIDER]}}
BEFORE = {
    "allocations": {"old": {"generation": 3, "resources": {"VCPU": 4}}},
    "consumer_generation": 5,
}


def claim(*answers):
    """The outcome of a claim, the calls made for it, and the pauses before them."""
    with a_placement(*answers) as (server, conf):
        client, pauses = allocating(conf)
        outcome = client.claim(REQUESTER, CONSUMER, REQUEST, lambda: True)
    return outcome, server.calls, pauses


@pytest.mark.parametrize(
    ("refusals", "calls", "claimed"), [(3, 8, True), (ATTEMPTS, 2 * ATTEMPTS, False)]
)
def test_conflicts_are_retried_so_many_times(refusals, calls, claimed):
    answers = [NOTHING, (409, CONCURRENT)] * refusals
    outcome, made, pauses = claim(*answers, NOTHING, (204, None))
    assert (outcome is not None, len(made)) == (claimed, calls)
    assert all(each <= LONGEST_PAUSE_SECONDS for each in pauses)
    assert len(list(filter(None, pauses))) == calls // 2 - 1


def test_a_call_whose_token_is_refused_is_made_once_more():
    outcome, made, _pauses = claim(NOTHING, (401, {}), (204, None))
    assert (outcome is None, len(made)) == (False, 3)
    with pytest.raises(Unavailable, match="HTTP 401"):
        claim((401, {}), (401, {}), NOTHING, (204, None))


def test_a_move_whose_claim_got_no_answer_is_known_by_what_it_has_then():
    both = {"allocations": REQUEST["allocations"] | BEFORE["allocations"]}
    outcome, made, _pauses = claim((200, BEFORE), None, (200, both))
    assert ([*outcome["allocations"]], len(made)) == (["old"], 3)


def test_what_an_instance_had_is_given_back():
    later = {**BEFORE, "consumer_generation": 6}
    tries = [(200, later), None, (200, later), (409, CONCURRENT), (200, later), (204, None)]
    with a_placement(*tries, (204, None), (404, FULL)) as (server, conf):
        made, _pauses = allocating(conf)
        made.give_back(REQUESTER, CONSUMER, BEFORE)
        for _time in range(2):
            made.give_back(REQUESTER, CONSUMER, {"allocations": {}})
    restored = {"old": {"resources": {"VCPU": 4}}}
    assert server.calls[1][3] == {**OWN, "allocations": restored, "consumer_generation": 6}
    assert [call[0] for call in server.calls] == [*(["GET", "PUT"] * 3), "DELETE", "DELETE"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((403, {}), "HTTP 403"),
        ((302, None, {"Location": "http://[::1/"}), "Invalid IPv6 URL"),
        ((200, ["x"]), "a list, not an object"),
        ((200, b"[" * 10**5), "not JSON"),
        ((200, {"allocation_requests": [{}], "provider_summaries": {}}), "not the expected form"),
    ],
)
def test_what_is_no_answer_makes_placement_unavailable(answer, text):
    with a_placement(answer) as (_server, conf):
        client = PlacementClient.from_conf(conf)
        fleet = SimpleNamespace(aggregates=(), lowest_version=0, bound_to=None)
        query = CandidateQuery(conf, client)
        wishes = query.wishes(a_request(), fleet)
        with pytest.raises(Unavailable, match=text):
            query.listed(wishes, REQUESTER)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "auth_type: it must be set"),
        ({"auth_type": "nothing-like-that"}, ".*nothing-like-that"),
        ({"cafile": "/no/such"}, "cafile: /no/such: this user cannot read it"),
        ({"timeout": 0}, "timeout: 0 is not greater than 0"),
        ({"endpoint_override": "127.0.0.1:8778"}, "endpoint_override: 127.0.0.1:8778 begins with"),
    ],
)
def test_a_placement_that_cannot_be_called_is_a_mistake_in_the_options(options, said):
    conf = a_conf(**{f"placement__{name}": value for name, value in options.items()})
    with pytest.raises(errors.ConfigurationError, match=rf"\[placement\].*{said}"):
        PlacementClient.from_conf(conf)


# --- deadlines -------------------------------------------------------------------


SLOW = [SILENCE, *DRIPPING]
BUSY = [None, (503, {}), (503, {}, {"Retry-After": "0"})]
NO_ANSWER = "no answer in time: (HTTP 503|Could not|Unable to est|Request to|the answer had not)"


@pytest.mark.parametrize("auth_type", ["none", "password"])
@pytest.mark.parametrize("answer", SLOW + BUSY)
def test_calls_are_made_again_until_the_deadline(auth_type, answer):
    """Those to Keystone, too."""
    with a_placement(*[answer] * 10_000) as (server, conf):
        conf.register_opts(loading.get_auth_plugin_conf_options("password"), group="placement")
        conf.set_override("auth_type", auth_type, group="placement")
        conf.set_override("auth_url", server.endpoint, group="placement")
        client, requester = PlacementClient.from_conf(conf), REQUESTER.within(0.5)
        with pytest.raises(Unavailable, match=NO_ANSWER):
            client.allocations(CONSUMER, requester)
    assert 0 <= time.monotonic() - requester.ends_at < 2
    assert len(server.calls) > (answer in BUSY)


@pytest.mark.parametrize(("asked", "pause"), [("3", 3), ("9" * 5000, 5)])
def test_a_server_may_say_when_it_is_to_be_called_again(asked, pause):
    with a_placement((503, {}, {"Retry-After": asked}), NOTHING) as (_server, conf):
        client, pauses = allocating(conf)
        client.allocations(CONSUMER, REQUESTER)
    assert pauses == [pause]


# --- the conductor: claim an alternate, release, leave a host -----------------------------------


def alternates(answers, name, *arguments):
    """The result of that method of the conductor's alternates, and the calls made for it."""
    with a_placement(*answers) as (server, conf):
        found = getattr(PlacementAlternates(allocating(conf)[0]), name)(*arguments)
    return found, server.calls


OWN = {"user_id": "u", "project_id": "p"}
IDS = {"request_id": "req-1", "global_request_id": "req-0"}


@pytest.mark.parametrize(
    ("context", "spec", "requester"),
    [
        ({}, {}, Requester(None, None, None)),
        ({"request_id": "req-1"}, {}, Requester(None, None, "req-1")),
        ({**OWN, **IDS}, {}, Requester("p", "u", "req-0")),
        (OWN, {"user_id": "u2", "project_id": "p2"}, Requester("p2", "u2", None)),
        ({"request_id": "заявка"}, {}, Requester(None, None, None)),
        ({"request_id": "req-1\r\nX-Other: 1"}, {}, Requester(None, None, None)),
    ],
)
def test_for_whom_is_claimed(context, spec, requester):
    assert Requester.from_request(SimpleNamespace(**context), a_request(**spec)) == requester


CONTEXT = SimpleNamespace(request_id="req-1", project_id="p", user_id="u")
OWNED = {"project_id": "p0", "user_id": "u0", "consumer_generation": 5}


@pytest.mark.parametrize(
    ("text", "answers", "claimed"),
    [
        pytest.param(None, [], True, id="nothing to claim"),
        pytest.param("null", [], True, id="nothing to claim, in words"),
        pytest.param(json.dumps(REQUEST), [(403, {})], False, id="no answer"),
    ],
)
def test_whether_an_alternate_is_claimed(text, answers, claimed):
    selection = objects.Selection(allocation_request=text, allocation_request_version="1.36")
    found, made = alternates(answers, "claim", CONTEXT, a_request(), CONSUMER, selection)
    assert (found, len(made)) == (claimed, len(answers))


@pytest.mark.parametrize("context", [CONTEXT, SimpleNamespace()])
@pytest.mark.parametrize(("status", "told"), [(204, []), (404, []), (403, [CONSUMER])])
def test_what_is_released(context, status, told, caplog):
    [(method, path, headers, _body)] = alternates([(status, None)], "release", context, CONSUMER)[1]
    assert (method, path) == ("DELETE", f"/allocations/{CONSUMER}")
    assert headers.get("x-openstack-request-id") == getattr(context, "request_id", None)
    assert [CONSUMER for message in caplog.messages if CONSUMER in message] == told


def test_what_an_instance_keeps_when_it_leaves_a_host_stays_its_owners():
    held = {name: {"resources": {"VCPU": 2}} for name in ("node", "other")}
    existing = (200, {"allocations": held, **OWNED})
    answers = [existing, existing, (204, None)]
    _found, made = alternates(answers, "leave", CONTEXT, CONSUMER, "node")
    assert [call[0] for call in made] == ["GET", "GET", "PUT"]
    assert all(call[2]["x-openstack-request-id"] == "req-1" for call in made)
    body = made[-1][3]
    assert body["allocations"] == {"other": {"resources": {"VCPU": 2}}}
    assert {name: body[name] for name in OWNED} == OWNED


def test_an_instance_that_cannot_leave_is_told(caplog):
    alternates([(403, {})], "leave", CONTEXT, CONSUMER, "node")
    assert [message for message in caplog.messages if CONSUMER in message and "node" in message]
