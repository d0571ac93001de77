"""(attributes of the host, query) -> matches, does not, or cannot be evaluated; JsonFilter."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import errors, objects
from scheduler.filters import json_filter
from scheduler.filters.json_filter import JsonFilter
from tests.builders import a_fleet, a_host, candidates
from tests.unit.filters.judging import judge

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
    [], {}, None, 0, "", ["=", "$free_ram_mb", 4096], ["=", 4096, "$free_ram_mb"],
    ["=", "$free_ram_mb", 4096.0], ["<=", "$vcpus_used", 0, 4], ["<", 1, 2, 3], ["=", 1, True],
    [">", "b", "a"], [">=", "$ram_allocation_ratio", 1.5], ["=", "$hypervisor_type", "QEMU"],
    ["=", "$hypervisor_hostname", "$nodename"], ["=", "$stats.tier", "gold"],
    ["=", "$stats.deep.er", "x"], ["=", "$service.disabled", False],
    ["=", "$service.binary", "nova-compute"], ["=", "$nosuch", 5, 5], ["in", "$host", "h1", "h2"],
    ["in", "$host", "h1"], ["in", "$vcpus_total", 3, 4], ["and"], ["and", []], ["and", YES, YES],
    ["or", YES, NO], ["or", NO, YES, NO], ["and", "$nosuch", YES], ["not", NO], ["not", YES, NO],
    ["not", ["=", "$nosuch", 5]], ["and", ["not", YES]],
]  # fmt: skip
NOT_MATCHING = [
    "=", ["<", "$free_ram_mb", 4096], ["=", 1, 1, 2], ["=", "b"], ["="],
    ["=", "$free_ram_mb", "4096"], ["=", "$free_ram_mb", 2**70], ["=", "$hypervisor_type", "qemu"],
    ["=", "$stats.nosuch.deeper", "x"], ["=", "$host_ip", "192.0.2.7"], ["=", "$nosuch", 5],
    ["=", "$", 5], ["=", "", 5], ["in", "$host", "h2"], ["in", "$host"], ["in", 3], ["or"],
    ["and", YES, NO], ["and", NO, YES], ["or", 0, ""], ["not", YES], ["not"], ["not", "$nosuch"],
    ["not", ["not", YES]], ["not", ["not", NO]], ["or", ["not"]], ["=", ["not", YES], 1],
]  # fmt: skip

MALFORMED = [
    "not json", '["="', "true", "7", '"foo"', '{"=": 1}', "[null]", '[["="]]', '["AND", 1]',
    '["like", "a", "b"]', '["in", "$host", ["h1", "h2"]]', '[">", "$free_ram_mb", "100"]',
    '[">=", "$host_ip", "192.0.2.1"]', '["=", "$host.x", 1]', '["=", "$host.__class__", 1]',
    '["=", "$free_ram_mb.x", 1]', '["=", "$cpu_info.vendor", "Intel"]',
    '["=", "$stats.tier.x", 1]', '["<", "$supported_instances", 1]',
    '["<", 5, 3, "x"]', '["not", ' * 64 + '["="]' + "]" * 64, "[" * 100_000,
]  # fmt: skip


WITHIN_REACH = {
    "aggregates", "cell_uuid", "cpu_allocation_ratio", "cpu_info", "disk_allocation_ratio",
    "disk_mb_used", "failed_builds", "free_disk_mb", "free_ram_mb", "host", "host_ip",
    "hypervisor_hostname", "hypervisor_type", "hypervisor_version", "limits", "metrics", "nodename",
    "num_instances", "num_io_ops", "numa_topology", "pci_stats", "ram_allocation_ratio", "service",
    "stats", "supported_instances", "total_usable_disk_gb", "total_usable_ram_mb", "updated",
    "uuid", "vcpus_total", "vcpus_used",
}  # fmt: skip


def matching(text, hosts):
    return json_filter.matches(text, hosts, MOST_LEVELS)


def test_exactly_so_much_can_be_asked_for():
    assert json_filter.ATTRIBUTES == WITHIN_REACH


def test_nothing_else_of_a_host_can_be_asked_for():
    hosts = candidates(a_host(**HOST).table)
    (state,) = hosts.states()
    for name in {*dir(state), "instances"} - WITHIN_REACH:
        query = ["=", f"${name}", 5, 5]  # what has no value is left out

        assert (name, matching(json.dumps(query), hosts).tolist()) == (name, [True])


@pytest.mark.parametrize("query", [*MATCHING, *NOT_MATCHING], ids=str)
def test_queries(query):
    found = matching(json.dumps(query), candidates(a_host(**HOST).table)).tolist()
    assert found == [query in MATCHING]


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:40])
def test_queries_that_cannot_be_evaluated(text):
    hosts = candidates(a_host(**HOST).table)

    with pytest.raises(errors.InvalidRequest, match=r"scheduler_hints\.query"):
        matching(text, hosts)


def test_of_an_object_only_the_fields_are_within_reach():
    aggregate = objects.Aggregate(name="fast")

    assert json_filter._within(aggregate, ["name"]) == "fast"
    for name in ("__class__", "encoded", "FIELDS"):
        with pytest.raises(errors.InvalidRequest, match=r"scheduler_hints\.query"):
            json_filter._within(aggregate, [name])


def test_one_query_and_not_several():
    with pytest.raises(errors.InvalidRequest, match=r"scheduler_hints\.query"):
        matching(["[]", "[]"], candidates(a_fleet({})))


def test_nesting_up_to_the_limit():
    query = '["and", ' * (MOST_LEVELS - 1) + '["="]' + "]" * (MOST_LEVELS - 1)

    assert matching(query, candidates(a_fleet({}))).tolist() == [False]
    with pytest.raises(errors.InvalidRequest, match=r"\[scheduler\] max_request_depth"):
        matching(f'["and", {query}]', candidates(a_fleet({})))


@pytest.mark.parametrize(
    "query", [["<=", "$disk_allocation_ratio", 1.0], ["=", "$hypervisor_hostname", "n1"]], ids=str
)
def test_a_row_never_filled_in_has_neither_ratios_nor_a_hypervisor(query):
    request = {"hints": {"query": [json.dumps(query)]}}

    assert judge(JsonFilter, {"reported": True}, request) == ""
    assert judge(JsonFilter, {"reported": False}, request) == "json.no_match"


def test_a_query_with_thousands_of_operands_is_evaluated_in_seconds():
    hosts = candidates(a_fleet(*({"stats": {"a": {"b": f"x{n}"}}} for n in range(500))))
    query = json.dumps(["in", "$hypervisor_hostname", *["$stats.a.b"] * 4000])
    began = time.process_time()
    assert not json_filter.matches(query, hosts, MOST_LEVELS).any()
    assert time.process_time() - began < 30


@pytest.mark.parametrize("operator", ["in", "=", "and", "or", "not"])
def test_no_query_takes_longer_than_a_decision_may(operator):
    hosts = candidates(a_fleet(*({"stats": {"a": f"x{n}"}} for n in range(500))))
    query = json.dumps(
        [operator, *(f"$stats.a.b{n}" if n % 2 else f"$stats.b{n}" for n in [0, 2, 4] * 2000)]
    )
    hosts.scope.ends_at = time.monotonic()
    with pytest.raises(errors.DecisionGivenUp):
        json_filter.matches(query, hosts, MOST_LEVELS)


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
