"""What is known of providers, and whom it rules out."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from scheduler import objects
from scheduler.claims.placement.candidates import Answer, CandidateQuery
from scheduler.claims.placement.facts import AGGREGATE as AGGREGATES_OF
from scheduler.claims.placement.facts import FREE, TRAIT, Facts
from scheduler.claims.placement.memory import MOST_QUERIES, Memory
from tests.builders import a_conf
from tests.unit.claims.placement.test_query import (
    AGGREGATE,
    BOTH_WAYS,
    DISABLED,
    NO_DISK,
    NO_FLEET,
    NODE,
    OTHER,
    a_spec,
)

SMALL = {**NO_DISK, "memory_mb": 100}


@pytest.mark.parametrize(
    ("spec", "shared", "reasons"),
    [
        pytest.param({}, (), [], id="nothing"),
        pytest.param({"trait:HW_A": "required"}, (), [], id="its trait"),
        pytest.param({"trait:B": "required"}, (), ["it has no trait B"], id="a trait"),
        pytest.param({"trait:HW_A": "forbidden"}, (), ["it has the trait HW_A"], id="a ban"),
        pytest.param(
            {"resources:VCPU": "3", "resources:CUSTOM_X": "1"},
            (),
            ["2 VCPU free, 3 wanted", "0 CUSTOM_X free, 1 wanted"],
            id="room",
        ),
        pytest.param(
            {"resources1:VCPU": "1", "resources2:VCPU": "2"},
            (),
            ["2 VCPU free, 3 wanted"],
            id="room in all",
        ),
        pytest.param({"resources:CUSTOM_X": "1"}, {"CUSTOM_X"}, [], id="shared"),
        pytest.param(
            {"requested_destination": objects.Destination(aggregates=[OTHER])},
            (),
            ["it is not in the aggregates asked for"],
            id="aggregates",
        ),
        pytest.param(
            {"requested_destination": objects.Destination(forbidden_aggregates={AGGREGATE})},
            (),
            ["it is in an aggregate that is ruled out"],
            id="forbidden aggregates",
        ),
    ],
)
def test_why_a_provider_would_be_refused(spec, shared, reasons):
    is_specs = all(":" in key for key in spec)
    wanted = a_spec(spec, flavor=SMALL) if is_specs else a_spec(flavor=SMALL, **spec)
    (wish,) = CandidateQuery(a_conf(), None).wishes(wanted, NO_FLEET)
    facts = Facts()
    facts.learn(FREE, 5.0, {NODE: {"VCPU": 2, "MEMORY_MB": 100}})
    facts.learn(TRAIT, 5.0, {NODE: {"HW_A": 1}})
    facts.learn(AGGREGATES_OF, 5.0, {NODE: {AGGREGATE: 1}})
    needs = wish.needs(set(shared))

    def unmet():
        return [need.text.format(found) for need, found in facts.unmet(NODE, needs, 4.0)]

    assert unmet() == reasons
    assert not facts.unmet(NODE, needs, 5.0)
    places = [facts.place_of(each) for each in (NODE, OTHER)]
    assert facts.refused(needs, 4.0)[places].tolist() == [bool(reasons), False]
    assert not facts.refused(needs, 5.0).any()
    facts.learn(TRAIT, 5.0, {NODE: {DISABLED[1:]: 1}})
    assert shared or unmet()[-1] == "it is disabled"


def test_answers_to_the_latest_queries_are_remembered():
    memory = Memory(None, lambda: 60)
    for number in (*range(MOST_QUERIES), 0, MOST_QUERIES):
        memory.note_answer(str(number), NODE, Answer({NODE: [{}]}))
    assert [memory.is_granted(query, NODE) for query in "01"] == [True, False]


@pytest.mark.parametrize("is_all", [True, False])
def test_who_is_not_on_a_list_is_passed_over_if_that_was_whole(is_all):
    """Who has no PCPU may be asked for VCPU."""
    memory, now = Memory(None, lambda: 60), time.monotonic()
    memory.facts.learn(FREE, now, {NODE: {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 8}})
    memory.note_answer("another", OTHER, Answer())
    memory.note_list("query", Answer({NODE: [{}]}, is_all=is_all))
    places = np.array([memory.facts.place_of(node) for node in (NODE, OTHER)])
    hosts = SimpleNamespace(per_document=lambda *_args, **_more: places)
    wishes = CandidateQuery(a_conf(), None).wishes(a_spec(**BOTH_WAYS), NO_FLEET)
    assert memory.grantable("query", wishes, hosts).tolist() == [True, not is_all]
