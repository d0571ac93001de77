"""(policy, what is enabled) -> may the group be used?"""

from __future__ import annotations

import pytest

from conductor_stub.groups import PolicySupport, setup_instance_group
from scheduler import errors, objects
from tests.unit.conductor_stub import builders

NOTHING = {
    "filter_scheduler__enabled_filters": [],
    "filter_scheduler__weight_classes": [],
}


@pytest.mark.parametrize(
    ("policy", "filters", "weighers", "missing"),
    [
        ("affinity", ["ServerGroupAffinityFilter"], [], None),
        ("affinity", ["ServerGroupAntiAffinityFilter"], [], "ServerGroupAffinityFilter"),
        ("anti-affinity", ["ServerGroupAntiAffinityFilter"], [], None),
        ("anti-affinity", [], [], "ServerGroupAntiAffinityFilter"),
        ("soft-affinity", [], ["nova.scheduler.weights.all_weighers"], None),
        ("soft-affinity", [], ["scheduler.weights.all_weighers"], None),
        (
            "soft-affinity",
            [],
            ["nova.scheduler.weights.affinity.ServerGroupSoftAffinityWeigher"],
            None,
        ),
        (
            "soft-affinity",
            [],
            ["nova.scheduler.weights.affinity.ServerGroupSoftAntiAffinityWeigher"],
            "ServerGroupSoftAffinityWeigher",
        ),
        (
            "soft-anti-affinity",
            [],
            ["scheduler.weights.affinity.ServerGroupSoftAntiAffinityWeigher"],
            None,
        ),
        ("soft-anti-affinity", [], ["my.Weigher"], "ServerGroupSoftAntiAffinityWeigher"),
        ("something-else", [], [], None),
    ],
)
def test_a_policy_needs_what_enforces_it(policy, filters, weighers, missing):
    support = PolicySupport(
        builders.conf(
            filter_scheduler__enabled_filters=filters, filter_scheduler__weight_classes=weighers
        )
    )

    if missing is None:
        assert support.check([policy]) is (policy != "something-else")
    else:
        with pytest.raises(errors.UnsupportedPolicyException, match=f"{missing} not configured"):
            support.check([policy])


@pytest.mark.parametrize(
    ("group", "policies"),
    [
        (objects.InstanceGroup(uuid="u", policy="anti-affinity", members=["m"]), ["anti-affinity"]),
        (objects.InstanceGroup(uuid="u", policies=["affinity"], members=["m"]), ["affinity"]),
    ],
)
def test_the_group_joins_the_filter_properties(group, policies):
    given = {"group_hosts": ["b", "a"], "other": 1}

    updated = setup_instance_group(given, group, ["c", "a"], PolicySupport(builders.conf()))

    assert updated == {
        "other": 1,
        "group_updated": True,
        "group_hosts": ["a", "b", "c"],
        "group_policies": policies,
        "group_members": ["m"],
        "group_uuid": "u",
    }
    assert given == {"group_hosts": ["b", "a"], "other": 1}


def test_a_group_of_another_policy_adds_nothing():
    group = objects.InstanceGroup(uuid="u", policy="legacy", members=[])

    updated = setup_instance_group({"a": 1}, group, ["h"], PolicySupport(builders.conf(**NOTHING)))

    assert updated == {"a": 1}
