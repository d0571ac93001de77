"""(instances on the host, hints or group) -> together, apart, or neither."""

from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.filters import affinity_filter
from tests.builders import OWN_UUID, a_conf, a_fleet, a_host, a_request, candidates, verdict

U1, U2, U3 = (f"aaaaaaaa-0000-4000-a000-00000000000{n}" for n in (1, 2, 3))
PRESENT, ABSENT = ["different_host.present"], ["same_host.absent"]
ELSEWHERE, FULL = ["affinity.elsewhere"], ["anti_affinity.full"]

HINTS = [
    pytest.param([U1], None, [], ABSENT, id="no hints"),
    pytest.param([], [U1], [], ABSENT, id="empty host"),
    pytest.param([U1, U2], [U1], PRESENT, [], id="resident"),
    pytest.param([U1], [U2, U1], PRESENT, [], id="one of two resident"),
    pytest.param([U1], [U2, U3], [], ABSENT, id="neither resident"),
    pytest.param([U1], [U1.upper()], [], ABSENT, id="text is compared exactly"),
    pytest.param([U1], [], [], [], id="empty list"),
    pytest.param([U1], [""], [], [], id="empty text"),
]


@pytest.mark.parametrize(("residents", "hint", "different", "same"), HINTS)
def test_hints_name_instances(residents, hint, different, same):
    host = a_host(instances=residents)
    if hint is None:
        requests = [a_request(), a_request(hints={}), a_request(hints={"other": [U1]})]
        same = []
    else:
        requests = [a_request(hints={"different_host": hint, "same_host": hint})]

    for request in requests:
        assert verdict(affinity_filter.DifferentHostFilter(a_conf()), host, request) == different
        assert verdict(affinity_filter.SameHostFilter(a_conf()), host, request) == same


@pytest.mark.parametrize(
    ("group", "reasons"),
    [
        pytest.param(None, [], id="no group"),
        pytest.param({"policy": "affinity"}, [], id="group on no host yet"),
        pytest.param({"policy": "affinity", "hosts": None}, [], id="hosts null"),
        pytest.param({"policy": "affinity", "hosts": ["h1"]}, [], id="on this host"),
        pytest.param({"policy": "affinity", "hosts": ["h2", "h1"]}, [], id="on this one too"),
        pytest.param({"policy": "affinity", "hosts": ["h2"]}, ELSEWHERE, id="on another host"),
        pytest.param({"policy": "affinity", "hosts": ["H1"]}, ELSEWHERE, id="hosts have a case"),
        pytest.param({"policy": "affinity", "hosts": ["n1"]}, ELSEWHERE, id="nodes do not count"),
        pytest.param({"policies": ["affinity"], "hosts": ["h2"]}, ELSEWHERE, id="old form"),
        pytest.param({"policy": "soft-affinity", "hosts": ["h2"]}, [], id="soft"),
        pytest.param({"policy": "anti-affinity", "hosts": ["h2"]}, [], id="the other policy"),
        pytest.param({"policy": None, "hosts": ["h2"]}, [], id="no policy"),
    ],
)
def test_affinity_goes_where_the_group_is(group, reasons):
    affinity = affinity_filter.ServerGroupAffinityFilter(a_conf())

    assert verdict(affinity, a_host(), a_request(group=group)) == reasons


@pytest.mark.parametrize(
    ("residents", "group", "reasons"),
    [
        pytest.param([U1], None, [], id="no group"),
        pytest.param([U1], {"members": [U2]}, [], id="no member here"),
        pytest.param([U1], {"members": [U1]}, FULL, id="a member here"),
        pytest.param([U1], {"members": [U1.upper()]}, [], id="text is compared exactly"),
        pytest.param([U1], {"members": None}, [], id="members null"),
        pytest.param([U1], {"members": [U2], "hosts": ["h1"]}, [], id="hosts do not count"),
        pytest.param([U1], {"members": [U1], "hosts": []}, FULL, id="members do"),
        pytest.param([OWN_UUID, U1], {"members": [U1]}, [], id="the instance is here itself"),
        pytest.param([U1], {"members": [U1], "rules": {"max_server_per_host": "2"}}, [], id="1<2"),
        pytest.param(
            [U1, U2], {"members": [U1, U2], "rules": {"max_server_per_host": "2"}}, FULL, id="2=2"
        ),
        pytest.param(
            [U1], {"members": [U1, U1, U1], "rules": {"max_server_per_host": "2"}}, [], id="once"
        ),
        pytest.param([], {"members": [], "rules": {"max_server_per_host": "0"}}, FULL, id="0=0"),
        pytest.param([U1], {"members": [U1], "policy": "soft-anti-affinity"}, [], id="soft"),
        pytest.param([U1], {"members": [U1], "policy": "affinity"}, [], id="the other policy"),
        pytest.param([U1], {"members": [U1], "policy": None}, [], id="no policy"),
    ],
)
def test_anti_affinity_counts_members(residents, group, reasons):
    anti_affinity = affinity_filter.ServerGroupAntiAffinityFilter(a_conf())
    group = group and {"policy": "anti-affinity", **group}

    found = verdict(anti_affinity, a_host(instances=residents), a_request(group=group))

    assert found == reasons


@pytest.mark.parametrize(
    ("residents", "group", "reasons"),
    [
        pytest.param([U1], {"members": [U1]}, [], id="members do not count"),
        pytest.param([], {"hosts": ["h1"]}, FULL, id="hosts do"),
        pytest.param([], {"hosts": ["H1"]}, [], id="exactly"),
        pytest.param([], {"hosts": None}, [], id="hosts null"),
        pytest.param([OWN_UUID], {"hosts": ["h1"]}, [], id="the instance is here itself"),
        pytest.param(
            [], {"hosts": ["h1"], "rules": {"max_server_per_host": "2"}}, FULL, id="no rules"
        ),
    ],
)
def test_newtons_anti_affinity_goes_by_hosts(residents, group, reasons):
    conf = a_conf()
    conf.set_override("semantics", "newton", group="scheduler")
    anti_affinity = affinity_filter.ServerGroupAntiAffinityFilter(conf)
    request = a_request(group={"policy": "anti-affinity", **group})

    assert verdict(anti_affinity, a_host(instances=residents), request) == reasons


@pytest.mark.parametrize(
    ("address", "hints", "near"),
    [
        pytest.param("192.168.1.10", {}, True, id="no hint"),
        pytest.param("192.168.1.10", {"build_near_host_ip": [""]}, True, id="empty hint"),
        pytest.param("192.168.1.10", {"cidr": ["/8"]}, True, id="only a prefix"),
        pytest.param("192.168.1.10", {"build_near_host_ip": ["192.168.1.1"]}, True, id="/24"),
        pytest.param("192.168.2.10", {"build_near_host_ip": ["192.168.1.1"]}, False, id="next"),
        pytest.param(
            "192.168.2.10", {"build_near_host_ip": ["192.168.1.1"], "cidr": ["/16"]}, True, id="16"
        ),
        pytest.param(
            *(
                "192.168.1.9",
                {"build_near_host_ip": ["192.168.1.1"]} | {"cidr": ["/255.255.255.0"]},
            ),
            *(True,),
            id="mask",
        ),
        pytest.param(
            "192.168.1.10",
            {"build_near_host_ip": ["192.168.1.1"], "cidr": ["24"]},
            False,
            id="glue",
        ),
        pytest.param(
            "192.168.1.124", {"build_near_host_ip": ["192.168.1.1"], "cidr": ["24"]}, True, id="d"
        ),
        pytest.param(
            "192.168.1.1", {"build_near_host_ip": ["192.168.1.1"], "cidr": [""]}, True, id="one"
        ),
        pytest.param(
            "fd00::9", {"build_near_host_ip": ["fd00::1"], "cidr": ["/64"]}, True, id="v6"
        ),
        pytest.param("fd00::9", {"build_near_host_ip": ["10.0.0.1"]}, False, id="other family"),
        pytest.param(None, {"build_near_host_ip": ["10.0.0.1"]}, False, id="no address"),
        pytest.param("here", {"build_near_host_ip": ["10.0.0.1"]}, False, id="not an address"),
    ],
)
def test_hosts_near_an_address(address, hints, near):
    cidr = affinity_filter.SimpleCIDRAffinityFilter(a_conf())

    found = verdict(cidr, a_host(host_ip=address), a_request(hints=hints))

    assert found == ([] if near else ["cidr.far"])


@pytest.mark.parametrize(
    "hints",
    [
        {"build_near_host_ip": ["10.0.0.1"], "cidr": ["/33"]},
        {"build_near_host_ip": ["fd00::1"], "cidr": ["/255.255.255.0"]},
        {"build_near_host_ip": ["here"]},
        {"build_near_host_ip": ["10.0.0.1", "10.0.0.2"]},
        {"build_near_host_ip": ["10.0.0.1"], "cidr": ["/24", "/8"]},
    ],
)
def test_hints_that_are_no_network(hints):
    cidr = affinity_filter.SimpleCIDRAffinityFilter(a_conf())

    with pytest.raises(errors.InvalidRequest, match="build_near_host_ip"):
        verdict(cidr, a_host(host_ip="10.0.0.1"), a_request(hints=hints))


def test_a_rule_that_is_no_number_is_the_requests_fault():
    anti_affinity = affinity_filter.ServerGroupAntiAffinityFilter(a_conf())
    group = {"policy": "anti-affinity", "rules": {"max_server_per_host": "many"}}

    with pytest.raises(errors.InvalidRequest, match="InstanceGroup.rules"):
        verdict(anti_affinity, a_host(), a_request(group=group))


def test_all_nodes_of_a_host_share_its_instances():
    table = a_fleet({"host": "h1", "node": "n1", "instances": [U1]}, {"host": "h1", "node": "n2"})
    anti_affinity = affinity_filter.ServerGroupAntiAffinityFilter(a_conf())
    request = a_request(group={"policy": "anti-affinity", "members": [U1]})

    [(_reason, mask)] = anti_affinity.conditions(candidates(table), request)

    assert mask.tolist() == [False, False]
