"""(attributes of the host, query) -> matches, does not, or cannot be evaluated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import errors, objects
from scheduler.filters import json_query
from tests.builders import a_fleet, a_host, candidates

MOST_LEVELS = 64
YES, NO = ["=", 1, 1], ["=", 1, 2]
HOST = {
    "hypervisor_type": "QEMU",
    "host_ip": "192.0.2.7",
    "stats": {"tier": "gold", "deep": {"er": "x"}},
    "cpu_info": '{"vendor": "Intel"}',
    "service": {"binary": "nova-compute"},
}

MATCHING = [
    ([], True),
    ({}, True),
    (None, True),
    (0, True),
    ("", True),
    ("=", False),
    (["=", "$free_ram_mb", 4096], True),
    (["=", 4096, "$free_ram_mb"], True),
    (["=", "$free_ram_mb", 4096.0], True),
    (["<", "$free_ram_mb", 4096], False),
    (["<=", "$vcpus_used", 0, 4], True),
    (["<", 1, 2, 3], True),
    (["=", 1, 1, 2], False),
    (["=", 1, True], True),
    ([">", "b", "a"], True),
    (["=", "b"], False),
    (["="], False),
    (["=", "$free_ram_mb", "4096"], False),
    (["=", "$free_ram_mb", 2**70], False),
    ([">=", "$ram_allocation_ratio", 1.5], True),
    (["=", "$hypervisor_type", "QEMU"], True),
    (["=", "$hypervisor_type", "qemu"], False),
    (["=", "$hypervisor_hostname", "$nodename"], True),
    (["=", "$stats.tier", "gold"], True),
    (["=", "$stats.deep.er", "x"], True),
    (["=", "$stats.nosuch.deeper", "x"], False),
    (["=", "$service.disabled", False], True),
    (["=", "$service.binary", "nova-compute"], True),
    (["=", "$host_ip", "192.0.2.7"], False),
    (["=", "$nosuch", 5], False),
    (["=", "$nosuch", 5, 5], True),
    (["=", "$", 5], False),
    (["=", "", 5], False),
    (["in", "$host", "h1", "h2"], True),
    (["in", "$host", "h2"], False),
    (["in", "$host"], False),
    (["in", "$host", "h1"], True),
    (["in", 3], False),
    (["in", "$vcpus_total", 3, 4], True),
    (["and"], True),
    (["or"], False),
    (["and", []], True),
    (["and", YES, NO], False),
    (["and", NO, YES], False),
    (["and", YES, YES], True),
    (["or", YES, NO], True),
    (["or", NO, YES, NO], True),
    (["or", 0, ""], False),
    (["and", "$nosuch", YES], True),
    (["not", YES], False),
    (["not", NO], True),
    (["not", YES, NO], True),
    (["not"], False),
    (["not", "$nosuch"], False),
    (["not", ["=", "$nosuch", 5]], True),
    (["not", ["not", YES]], False),
    (["not", ["not", NO]], False),
    (["and", ["not", YES]], True),
    (["or", ["not"]], False),
    (["=", ["not", YES], 1], False),
]

MALFORMED = [
    "not json",
    '["="',
    "true",
    "7",
    '"foo"',
    '{"=": 1}',
    "[null]",
    '[["="]]',
    '["AND", 1]',
    '["like", "a", "b"]',
    '["in", "$host", ["h1", "h2"]]',
    '[">", "$free_ram_mb", "100"]',
    '[">=", "$host_ip", "192.0.2.1"]',
    '["=", "$host.x", 1]',
    '["=", "$host.__class__", 1]',
    '["=", "$free_ram_mb.x", 1]',
    '["=", "$cpu_info.vendor", "Intel"]',
    '["=", "$stats.tier.x", 1]',
    '["<", "$supported_instances", 1]',
    '["not", ' * 64 + '["="]' + "]" * 64,
    "[" * 100_000,
]


WITHIN_REACH = {
    "aggregates", "cell_uuid", "cpu_allocation_ratio", "cpu_info", "disk_allocation_ratio",
    "disk_mb_used", "failed_builds", "free_disk_mb", "free_ram_mb", "host", "host_ip",
    "hypervisor_hostname", "hypervisor_type", "hypervisor_version", "limits", "metrics", "nodename",
    "num_instances", "num_io_ops", "numa_topology", "pci_stats", "ram_allocation_ratio", "service",
    "stats", "supported_instances", "total_usable_disk_gb", "total_usable_ram_mb", "updated",
    "uuid", "vcpus_total", "vcpus_used",
}  # fmt: skip


def matching(text, hosts):
    return json_query.matches(text, hosts, MOST_LEVELS)


def test_exactly_so_much_can_be_asked_for():
    assert json_query.ATTRIBUTES == WITHIN_REACH


def test_nothing_else_of_a_host_can_be_asked_for():
    hosts = candidates(a_host(**HOST).table)
    (state,) = hosts.states()
    for name in {*dir(state), "instances"} - WITHIN_REACH:
        query = ["=", f"${name}", 5, 5]  # what has no value is left out

        assert (name, matching(json.dumps(query), hosts).tolist()) == (name, [True])


@pytest.mark.parametrize(("query", "matches"), MATCHING, ids=str)
def test_queries(query, matches):
    hosts = candidates(a_host(**HOST).table)

    assert matching(json.dumps(query), hosts).tolist() == [matches]


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:40])
def test_queries_that_cannot_be_evaluated(text):
    hosts = candidates(a_host(**HOST).table)

    with pytest.raises(errors.InvalidRequest, match=r"scheduler_hints\.query"):
        matching(text, hosts)


def test_of_an_object_only_the_fields_are_within_reach():
    aggregate = objects.Aggregate(name="fast")

    assert json_query._within(aggregate, ["name"]) == "fast"
    for name in ("__class__", "encoded", "FIELDS"):
        with pytest.raises(errors.InvalidRequest, match=r"scheduler_hints\.query"):
            json_query._within(aggregate, [name])


def test_one_query_and_not_several():
    with pytest.raises(errors.InvalidRequest, match=r"scheduler_hints\.query"):
        matching(["[]", "[]"], candidates(a_fleet({})))


def test_nesting_up_to_the_limit():
    query = '["and", ' * (MOST_LEVELS - 1) + '["="]' + "]" * (MOST_LEVELS - 1)

    assert matching(query, candidates(a_fleet({}))).tolist() == [False]
    with pytest.raises(errors.InvalidRequest, match=r"\[scheduler\] max_request_depth"):
        matching(f'["and", {query}]', candidates(a_fleet({})))


def test_every_host_has_its_own_answer():
    table = a_fleet(
        {"free_ram_mb": 1, "stats": {"tier": "gold"}},
        {"free_ram_mb": 2, "stats": {"tier": "iron"}},
        {"free_ram_mb": 3},
    )
    query = ["or", ["=", "$stats.tier", "iron"], ["<", "$free_ram_mb", 2]]

    assert matching(json.dumps(query), candidates(table)).tolist() == [True, True, False]
    assert matching(json.dumps(query), candidates(a_fleet())).tolist() == []


_leaf = st.sampled_from(
    ["$free_ram_mb", "$vcpus_used", "$num_instances", "$host", "$stats.tier", "$nosuch", "$stats"]
    + ["gold", "h1", "", 0, 1, 512, 1.5, True, None]
)
_queries = st.recursive(
    _leaf,
    lambda inner: st.tuples(
        st.sampled_from(["=", "<", ">=", "in", "and", "or", "not"]), st.lists(inner, max_size=3)
    ).map(lambda pair: [pair[0], *pair[1]]),
    max_leaves=8,
).filter(lambda query: isinstance(query, list))
_hosts = st.fixed_dictionaries(
    {
        "free_ram_mb": st.sampled_from([0, 1, 512]),
        "vcpus_used": st.integers(0, 2),
        "stats": st.sampled_from([None, {"tier": "gold"}, {"tier": "iron"}]),
    }
)


@settings(max_examples=200, deadline=None)
@given(_queries, st.lists(_hosts, min_size=1, max_size=4))
def test_all_hosts_at_once_are_as_each_alone(query, hosts):
    text = json.dumps(query)
    table = a_fleet(*hosts)
    everywhere = candidates(table)
    alone = []
    for position in range(len(everywhere)):
        try:
            alone += matching(text, everywhere.take([position])).tolist()
        except errors.InvalidRequest:
            alone.append(None)

    if None in alone:
        with pytest.raises(errors.InvalidRequest):
            matching(text, everywhere)
    else:
        assert matching(text, everywhere).tolist() == alone
