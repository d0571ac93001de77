"""(what Placement answers, call after call) -> the answer, the calls, what stays reserved."""

import time

import pytest

from scheduler import errors
from scheduler.claims.placement.backend import LEFT_SECONDS, READS
from scheduler.claims.placement.facts import FREE
from scheduler.claims.placement.offers import QUERIES
from scheduler.explain.answer import to_dict
from scheduler.hosts.instances import TrackedInstance
from tests.builders import a_conf, a_request
from tests.unit.claims.placement.test_calls import (
    CONSUMER,
    CONSUMER_CHANGED,
    FULL,
    NOTHING,
    PROVIDER,
    a_driver,
    a_placement,
    answers_of,
    exchanges,
    request_of,
)

SAMPLE = exchanges("placement-simple.http")
OFFERED = answers_of(SAMPLE)[0]
NO_OFFER = (200, {"allocation_requests": [], "provider_summaries": {}})
OTHER = "c0000002-aaaa-4bbb-8ccc-000000000002"
SECOND = "f4a0f8c0-0000-4000-8000-000000000002"
PAIR = (CONSUMER, SECOND)
DONE, REFUSED, CHANGED, GONE = (204, None), (409, FULL), (409, CONSUMER_CHANGED), (403, {})


def on(*providers):
    """The answer to what an instance has: a CPU on each of *providers*."""
    found = {name: {"generation": 3, "resources": {"VCPU": 1}} for name in providers}
    return 200, {"allocations": found, "consumer_generation": 5}


ON_H1, ON_H2 = on(PROVIDER), on(OTHER)
BOTH = [ON_H1, ON_H1]
CHECK = {"_nova_check_type": ["rebuild"]}
NO_PROVIDERS = (200, {"resource_providers": []})
LOOK = [NO_PROVIDERS] * 3
"""Providers that share, those that are disabled, and all: looked up before the first request."""
FILL = [NOTHING, REFUSED, NOTHING, REFUSED]


class Asked:
    """What came of a request for *uuids* to a scheduler that knows the hosts h1 and h2."""

    def __init__(
        self, answers, uuids=(CONSUMER,), tracked=(), options=None, query="fleet", full="", **fields
    ):
        self.hosts = self.error = None
        with a_placement(*answers) as (server, conf):
            conf.set_override("placement_query", query, group="scheduler")
            context, spec = request_of(SAMPLE)
            context.is_redelivered = fields.pop("is_redelivered", False)
            for name, value in fields.items():
                setattr(spec, name, value)
            self.pauses = []
            driver = a_driver(conf, SAMPLE, self.pauses.append)
            # The list costs too much to be fetched early, however slow a question is here.
            driver.claims.memory.fetched("", 1000, is_all=True)
            driver.claims.memory.facts.learn(FREE, time.monotonic(), {full: {"VCPU": 0}})
            for each in tracked:
                driver.host_manager.table.put_instance(each.host, each.uuid, each)
            if options is not None:
                driver.claims.reconfigured(options)()
            try:
                rows = driver.select_destinations(context, spec, list(uuids))
                self.hosts = [first.service_host for first, *_others in rows]
            except errors.NovaException as error:
                self.error = error
        assert server.answers == [], "it asked less than was foreseen"
        self.calls = [f"{method} {path.split('?')[0][-1]}" for method, path, *_ in server.calls]
        self.bodies = [body for method, _path, _headers, body in server.calls if method == "PUT"]
        self.reserved = [each.key[0] for each in driver.host_manager.reservations]
        self.record = driver.recorder.records[-1]


ASK, READ, CLAIM, AGAIN = "GET s", "GET 1", "PUT 1", "DELETE 1"


@pytest.mark.parametrize("is_redelivered", [True, False])
def test_one_that_another_worker_may_be_at_is_left_to_it_first(is_redelivered):
    asked = Asked([OFFERED, ON_H2, ON_H2], is_redelivered=is_redelivered)
    assert (asked.hosts, asked.record.claim) == (["h2"], "repeated")
    assert list(filter(None, asked.pauses)) == [LEFT_SECONDS] * is_redelivered


def test_a_refusal_by_placement_is_not_laid_to_the_last_filter():
    conf = a_conf(scheduler__placement_refusals=1)
    asked = Asked([*LOOK, NO_OFFER, NO_OFFER, NOTHING], query="chosen", options=conf)
    assert asked.hosts is None
    assert asked.record.chosen == asked.record.alternates == []
    cause = to_dict(asked.record)["cause"]
    assert cause == "No host fits: 2 of 2 hosts pass every filter, and none can be claimed."


def test_a_check_of_where_an_instance_is_asks_and_claims_nothing():
    asked = Asked([], scheduler_hints={"_nova_check_type": ["rebuild"]})
    assert (asked.hosts, asked.calls, asked.record.claim) == (["h1"], [], None)


@pytest.mark.parametrize(
    ("uuids", "fields", "named"),
    [
        ([CONSUMER, "a/b"], {}, "instance_uuids: 'a/b'"),
        ([CONSUMER], {"project_id": None}, "RequestSpec.project_id: None"),
        ([CONSUMER], {"user_id": "u" * 256}, "RequestSpec.user_id: 'uuu"),
    ],
)
def test_what_cannot_be_a_consumer_is_named_before_anything_is_asked(uuids, fields, named):
    asked = Asked([], uuids, **fields)
    assert isinstance(asked.error, errors.InvalidRequest)
    assert named in str(asked.error)


@pytest.mark.parametrize(
    ("answers", "hosts", "calls"),
    [
        pytest.param([OFFERED, ON_H2, ON_H2], ["h2"], [ASK, READ, READ], id="seen on the way"),
        pytest.param([NO_OFFER, ON_H2], ["h2"], [ASK, READ], id="nothing is left"),
        pytest.param(
            [OFFERED, NOTHING, CHANGED, ON_H2],
            ["h2"],
            [ASK, READ, CLAIM, READ],
            id="another worker is at it",
        ),
        pytest.param(
            [OFFERED, NOTHING, CHANGED, NOTHING, ON_H2],
            ["h2"],
            [ASK, READ, CLAIM, READ, READ],
            id="another worker has just begun",
        ),
        pytest.param(
            [*([OFFERED, *FILL] * QUERIES), ON_H1],
            ["h1"],
            [*([ASK, READ, CLAIM, READ, CLAIM] * QUERIES), READ],
            id="full by now",
        ),
    ],
)
def test_a_request_that_was_answered_before_gets_the_same(answers, hosts, calls):
    asked = Asked(answers)
    assert (asked.hosts, asked.calls, asked.reserved) == (hosts, calls, [])
    assert asked.record.claim == "repeated"


def tried(*hosts):
    return {"retry": a_request(tried=[(host, "n") for host in hosts]).retry}


def tracked(vm_state):
    return {"tracked": [TrackedInstance(CONSUMER, "h2", vm_state=vm_state)]}


@pytest.mark.parametrize(
    ("found", "how", "hosts"),
    [
        pytest.param([ON_H1, ON_H2], {}, ["h1", "h2"], id="all"),
        pytest.param([on("disk", OTHER), ON_H2], {}, ["h2", "h2"], id="a tree"),
        pytest.param([NOTHING], {}, None, id="none"),
        pytest.param([(200, {})], {}, None, id="none in other words"),
        pytest.param([on("disk"), on("disk")], {}, None, id="on no host that is known"),
        pytest.param([ON_H1, NOTHING], {}, None, id="some"),
        pytest.param(BOTH, {"ignore_hosts": ["H1"]}, None, id="ignored"),
        pytest.param(BOTH, {"ignore_hosts": ["h2"]}, ["h1", "h1"], id="another is ignored"),
        pytest.param(BOTH, tried("h9", "H1"), None, id="tried"),
        pytest.param(BOTH, tried("h9"), ["h1", "h1"], id="another was tried"),
        pytest.param(BOTH, tried(), ["h1", "h1"], id="the first try"),
        pytest.param(BOTH, tracked("active"), None, id="it moves"),
        pytest.param(BOTH, tracked("building"), ["h1", "h1"], id="it is being built"),
        pytest.param(BOTH, tracked(None), ["h1", "h1"], id="it is to be built"),
    ],
)
def test_allocations_of_all_instances_are_an_answer_unless_ruled_out(found, how, hosts):
    asked = Asked([NO_OFFER, *found], PAIR, **how)
    assert asked.hosts == hosts
    assert isinstance(asked.error, errors.NoValidHost) is (hosts is None)


@pytest.mark.parametrize(
    ("answers", "error", "calls", "why"),
    [
        pytest.param(
            [NO_OFFER, NOTHING], errors.NoValidHost, 2, "Got no allocation candidates", id="none"
        ),
        pytest.param(
            [OFFERED, NOTHING, CHANGED, *([NOTHING] * READS)],
            *(errors.AllocationUpdateFailed, 3 + READS, "another process changed"),
            id="another claims for the same",
        ),
        pytest.param(
            [*([OFFERED, *FILL] * QUERIES), NOTHING],
            *(errors.NoValidHost, 5 * QUERIES + 1, None),
            id="all are full",
        ),
    ],
)
def test_an_end_without_a_host_leaves_nothing_reserved(answers, error, calls, why):
    asked = Asked(answers)
    assert isinstance(asked.error, error)
    assert asked.error.kwargs["code"] == 500  # as Nova's, for the fault of the server
    assert (len(asked.calls), asked.reserved) == (calls, [])
    assert why is None or why in asked.record.failure


@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        pytest.param([NOTHING, DONE, GONE, DONE], ["DELETE 1"], id="second unread"),
        pytest.param(
            [NOTHING, DONE, NOTHING, None, GONE, DONE, DONE],
            ["PUT 2", "GET 2", "DELETE 2", "DELETE 1"],
            id="second unsure",
        ),
        pytest.param([NOTHING, DONE, GONE, GONE], ["DELETE 1"], id="gone for good"),
    ],
)
def test_what_was_claimed_is_given_back_when_placement_goes_away(answers, calls):
    """Also a claim of which nobody knows whether it was made."""
    asked = Asked([OFFERED, *answers], PAIR)
    assert str(asked.error) == "No valid host was found. "
    assert asked.calls[-len(calls) :] == calls
    assert "Placement is not available" in asked.record.failure
    assert asked.reserved == []


def test_what_is_claimed_already_is_not_claimed_again():
    """The second server's host is full, so that both go to the host that the first has."""
    asked = Asked([OFFERED, *(NOTHING, DONE), *(NOTHING, REFUSED), *(NOTHING, DONE)], PAIR)
    assert asked.hosts == asked.reserved == ["h1", "h1"]
    assert asked.calls == [ASK, READ, CLAIM, "GET 2", "PUT 2", "GET 2", "PUT 2"]


@pytest.mark.parametrize(("vm_state", "keeps"), [("active", True), ("building", False)])
def test_an_instance_that_moves_keeps_what_it_has(vm_state, keeps):
    """One that is being built had an earlier try, which is replaced."""
    asked = Asked([OFFERED, on("old"), *([] if keeps else [on("old")]), DONE], **tracked(vm_state))
    assert asked.hosts == ["h1"]
    assert ("old" in asked.bodies[0]["allocations"]) is keeps
    assert asked.bodies[0]["consumer_generation"] == 5


def test_allocations_that_stay_are_named(caplog):
    three = (*PAIR, "f4a0f8c0-0000-4000-8000-000000000003")
    asked = Asked([OFFERED, *([NOTHING, DONE] * 2), GONE, GONE], three)
    assert isinstance(asked.error, errors.NoValidHost)
    assert f"nobody needs, for instances {SECOND}, {CONSUMER}: HTTP 403" in caplog.text


def test_the_caller_learns_that_placement_did_not_answer(caplog):
    with a_placement(*[BAD] * 10_000) as (server, conf):
        conf.set_override("placement_deadline_seconds", 1, group="scheduler")
        driver = a_driver(conf, SAMPLE)
        with pytest.raises(errors.NoValidHost, match="Placement did not answer within 1 s"):
            driver.select_destinations(*request_of(SAMPLE), [CONSUMER])
        assert "Placement is not available: no answer in time: HTTP 502" in caplog.text
        assert driver.claims.problem in caplog.text
        use = driver.recorder.records[-1].placement
        assert use.is_unanswered
        assert use.to_dict()["calls"] == {"list": len(server.calls)}
        server.answers[:] = [NO_OFFER, NOTHING]
        with pytest.raises(errors.NoValidHost):
            driver.select_destinations(*request_of(SAMPLE), [CONSUMER])
        assert driver.claims.problem is None  # it has no host, but it answers


def offer(*providers, **amounts):
    """The answer to a question: a CPU on one of the providers, which has *amounts*, or nothing."""
    requests = [
        {"allocations": {name: {"resources": {"VCPU": 1}}}, "mappings": {"": [name]}}
        for name in providers
    ]
    has = {"resources": {"VCPU": {"used": 0, **amounts}}, "traits": []} if amounts else {}
    summaries = {name: {"root_provider_uuid": name, **has} for name in providers}
    return 200, {"allocation_requests": requests, "provider_summaries": summaries}


LATER, BAD = (503, {}, {"Retry-After": "0"}), (502, {})
ODD = (200, {"allocations": {PROVIDER: {"resources": None}, OTHER: None}})
H1, H2, NEITHER = offer(PROVIDER), offer(OTHER), offer()
ONLY_LISTED = {"query": "fleet", "ignore_hosts": ["h2"]}


@pytest.mark.parametrize(
    ("answers", "hosts", "calls"),
    [
        pytest.param([H1, DONE], ["h1"], [ASK, CLAIM], id="granted and claimed"),
        pytest.param([NEITHER, H2, DONE], ["h2"], [ASK, ASK, CLAIM], id="the best is refused"),
        pytest.param([H1, REFUSED, H2, DONE], ["h2"], [ASK, CLAIM] * 2, id="taken meanwhile"),
        pytest.param(
            [H1, CHANGED, ON_H2, ON_H2], ["h2"], [ASK, CLAIM, READ, READ], id="answered before"
        ),
        pytest.param([H1, None, ON_H1], ["h1"], [ASK, CLAIM, READ], id="claimed without an answer"),
        pytest.param(
            [H1, None, NOTHING, NOTHING, DONE],
            ["h1"],
            [ASK, CLAIM, READ, READ, CLAIM],
            id="lost on the way",
        ),
        pytest.param([None, H1, DONE], ["h1"], [ASK, ASK, CLAIM], id="a cut connection"),
        pytest.param([LATER, H1, DONE], ["h1"], [ASK, ASK, CLAIM], id="not now"),
        pytest.param([BAD, None, H1, DONE], ["h1"], [*([ASK] * 3), CLAIM], id="not at once"),
        pytest.param([H1, BAD, ON_H1], ["h1"], [ASK, CLAIM, READ], id="claimed behind a proxy"),
        pytest.param([H1, None, GONE, DONE], None, [ASK, CLAIM, READ, AGAIN], id="nobody knows"),
        pytest.param([H1, None, ODD, DONE], None, [ASK, CLAIM, READ, AGAIN], id="nobody can tell"),
        pytest.param([H1, GONE], None, [ASK, CLAIM], id="claims are forbidden"),
        pytest.param([offer(PROVIDER, capacity=None)], None, [ASK], id="an odd offer"),
        pytest.param([offer(PROVIDER, capacity=10**400)], None, [ASK], id="a huge offer"),
        pytest.param(
            [NEITHER, NEITHER, OFFERED, DONE],
            ["h1"],
            [ASK, ASK, ASK, CLAIM],
            id="listed after refusals",
        ),
        pytest.param(
            [NEITHER, NEITHER, NO_OFFER, NOTHING],
            None,
            [ASK, ASK, ASK, READ],
            id="no refusal without a list",
        ),
    ],
)
def test_the_chosen_host_is_asked_about(answers, hosts, calls):
    asked = Asked([*LOOK, *answers], query="chosen")
    assert (asked.hosts, asked.reserved, asked.calls[3:]) == (
        hosts,
        hosts if asked.record.claim == "booked" else [],
        calls,
    )


@pytest.mark.parametrize(
    ("answers", "how", "hosts", "calls"),
    [
        pytest.param([*LOOK, NEITHER, H2, DONE], {}, ["h2"], [ASK, ASK, CLAIM], id="refused"),
        pytest.param([*LOOK, NEITHER, H1, DONE], {}, ["h1"], [ASK, ASK, CLAIM], id="not any more"),
        pytest.param(
            [*LOOK, NEITHER, H2, H1, DONE],
            *({"full": PROVIDER}, ["h1"], [ASK, ASK, ASK, CLAIM]),
            id="one that was passed over is better",
        ),
        pytest.param([H2, NOTHING], ONLY_LISTED, None, [ASK, READ], id="nobody is asked about"),
    ],
)
def test_which_hosts_a_full_list_leaves(answers, how, hosts, calls):
    """It has a place for one; others are asked about, but those that were refused before."""
    how = {"query": "chosen", **how}
    one = {"scheduler__placement_refusals": 1, "scheduler__max_placement_results": 1}
    asked = Asked(answers, options=a_conf(scheduler__placement_query=how["query"], **one), **how)
    assert (asked.hosts, asked.calls[-len(calls) :]) == (hosts, calls)


ALL, FIRST, SECOND_CLAIM = "POST s", "PUT 1", "PUT 2"


@pytest.mark.parametrize(
    ("answers", "hosts", "calls"),
    [
        pytest.param([DONE], ["h1", "h2"], [ALL], id="all at once"),
        pytest.param([REFUSED, DONE, DONE], ["h1", "h2"], [ALL, FIRST, SECOND_CLAIM], id="again"),
        pytest.param(
            [CHANGED, CHANGED, ON_H2, ON_H2, ON_H1],
            ["h2", "h1"],
            [ALL, FIRST, READ, READ, "GET 2"],
            id="answered before",
        ),
        pytest.param(
            [None, ON_H1, DONE, ON_H2, DONE],
            ["h1", "h2"],
            [ALL, READ, FIRST, "GET 2", SECOND_CLAIM],
            id="nobody knows",
        ),
        pytest.param(
            [None, GONE, DONE, DONE], None, [ALL, READ, "DELETE 2", AGAIN], id="nobody knows at all"
        ),
    ],
)
def test_several_servers_are_claimed_for_in_one_call(answers, hosts, calls):
    either = offer(PROVIDER, OTHER)  # the two questions may come in any order
    asked = Asked([*LOOK, either, either, *answers], PAIR, query="chosen")
    assert (asked.hosts, asked.calls[5:]) == (hosts, calls)
    assert asked.reserved == (hosts if asked.record.claim == "booked" else [])
