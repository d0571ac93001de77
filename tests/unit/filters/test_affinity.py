"""(instances, names and address of the host; hints, group, earlier attempts) -> there or not."""

from __future__ import annotations

import logging

import pytest

from scheduler import errors, objects
from scheduler.filters import addresses
from scheduler.filters.affinity_filter import (
    DifferentHostFilter,
    SameHostFilter,
    ServerGroupAffinityFilter,
    ServerGroupAntiAffinityFilter,
    SimpleCIDRAffinityFilter,
)
from scheduler.filters.all_hosts_filter import AllHostsFilter
from scheduler.filters.isolated_hosts_filter import IsolatedHostsFilter
from scheduler.filters.retry_filter import RetryFilter
from tests.builders import OWN_UUID, a_conf, a_fleet, a_request, candidates
from tests.unit.filters.judging import judge, rows

U1, U2, U3 = (f"aaaaaaaa-0000-4000-a000-00000000000{n}" for n in (1, 2, 3))
PRESENT, ABSENT = "different_host.present", "same_host.absent"
ELSEWHERE, FULL = "affinity.elsewhere", "anti_affinity.full"


@pytest.mark.parametrize(
    ("residents", "hint", "different", "same"),
    rows(
        ("empty host", [], [U1], "", ABSENT),
        ("resident", [U1, U2], [U1], PRESENT, ""),
        ("one of two resident", [U1], [U2, U1], PRESENT, ""),
        ("neither resident", [U1], [U2, U3], "", ABSENT),
        ("text is compared exactly", [U1], [U1.upper()], "", ABSENT),
        ("empty list", [U1], [], "", ""),
        ("empty text", [U1], [""], "", ""),
    ),
)
def test_hints_name_instances(residents, hint, different, same):
    host, request = {"instances": residents}, {"hints": {"different_host": hint, "same_host": hint}}

    assert judge(DifferentHostFilter, host, request) == different
    assert judge(SameHostFilter, host, request) == same


@pytest.mark.parametrize("hints", [None, {}, {"other": [U1]}])
@pytest.mark.parametrize("cls", [DifferentHostFilter, SameHostFilter])
def test_without_the_hint_any_host_will_do(cls, hints):
    assert judge(cls, {"instances": [U1]}, {"hints": hints}) == ""


@pytest.mark.parametrize(
    ("group", "reason"),
    rows(
        ("no group", None, ""),
        ("group on no host yet", {"policy": "affinity"}, ""),
        ("hosts null", {"policy": "affinity", "hosts": None}, ""),
        ("on this host", {"policy": "affinity", "hosts": ["h1"]}, ""),
        ("on this one too", {"policy": "affinity", "hosts": ["h2", "h1"]}, ""),
        ("on another host", {"policy": "affinity", "hosts": ["h2"]}, ELSEWHERE),
        ("hosts have a case", {"policy": "affinity", "hosts": ["H1"]}, ELSEWHERE),
        ("nodes do not count", {"policy": "affinity", "hosts": ["n1"]}, ELSEWHERE),
        ("old form", {"policies": ["affinity"], "hosts": ["h2"]}, ELSEWHERE),
        ("soft", {"policy": "soft-affinity", "hosts": ["h2"]}, ""),
        ("the other policy", {"policy": "anti-affinity", "hosts": ["h2"]}, ""),
        ("no policy", {"policy": None, "hosts": ["h2"]}, ""),
    ),
)
def test_affinity_goes_where_the_group_is(group, reason):
    assert judge(ServerGroupAffinityFilter, {}, {"group": group}) == reason


def upto(number):
    return {"rules": {"max_server_per_host": str(number)}}


@pytest.mark.parametrize(
    ("residents", "group", "reason"),
    rows(
        ("no group", [U1], None, ""),
        ("no member here", [U1], {"members": [U2]}, ""),
        ("a member here", [U1], {"members": [U1]}, FULL),
        ("text is compared exactly", [U1], {"members": [U1.upper()]}, ""),
        ("members null", [U1], {"members": None}, ""),
        ("hosts do not count", [U1], {"members": [U2], "hosts": ["h1"]}, ""),
        ("members do", [U1], {"members": [U1], "hosts": []}, FULL),
        ("the instance is here itself", [OWN_UUID, U1], {"members": [U1]}, ""),
        ("1 of 2", [U1], {"members": [U1], **upto(2)}, ""),
        ("2 of 2", [U1, U2], {"members": [U1, U2], **upto(2)}, FULL),
        ("each counts once", [U1], {"members": [U1, U1, U1], **upto(2)}, ""),
        ("0 of 0", [], {"members": [], **upto(0)}, FULL),
        ("soft", [U1], {"members": [U1], "policy": "soft-anti-affinity"}, ""),
        ("the other policy", [U1], {"members": [U1], "policy": "affinity"}, ""),
        ("no policy", [U1], {"members": [U1], "policy": None}, ""),
    ),
)
def test_anti_affinity_counts_members(residents, group, reason):
    group = group and {"policy": "anti-affinity", **group}

    found = judge(ServerGroupAntiAffinityFilter, {"instances": residents}, {"group": group})

    assert found == reason


@pytest.mark.parametrize(
    ("residents", "group", "reason"),
    rows(
        ("members do not count", [U1], {"members": [U1]}, ""),
        ("hosts do", [], {"hosts": ["h1"]}, FULL),
        ("exactly", [], {"hosts": ["H1"]}, ""),
        ("hosts null", [], {"hosts": None}, ""),
        ("the instance is here itself", [OWN_UUID], {"hosts": ["h1"]}, ""),
        ("no rules", [], {"hosts": ["h1"], **upto(2)}, FULL),
    ),
)
def test_newtons_anti_affinity_goes_by_hosts(residents, group, reason):
    host, request = {"instances": residents}, {"group": {"policy": "anti-affinity", **group}}

    assert judge(ServerGroupAntiAffinityFilter, host, request, semantics="newton") == reason


def test_a_rule_that_is_no_number_is_the_requests_fault():
    with pytest.raises(errors.InvalidRequest, match="InstanceGroup.rules"):
        judge(
            ServerGroupAntiAffinityFilter,
            {},
            {"group": {"policy": "anti-affinity", **upto("many")}},
        )


def test_all_nodes_of_a_host_share_its_instances():
    table = a_fleet({"host": "h1", "node": "n1", "instances": [U1]}, {"host": "h1", "node": "n2"})
    anti_affinity = ServerGroupAntiAffinityFilter(a_conf())
    request = a_request(group={"policy": "anti-affinity", "members": [U1]})

    [(_reason, mask)] = anti_affinity.conditions(candidates(table), request)

    assert mask.tolist() == [False, False]


# --- addresses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "near", "cidr", "reason"),
    rows(
        ("no hint", "192.168.1.10", None, None, ""),
        ("empty hint", "192.168.1.10", "", None, ""),
        ("only a prefix", "192.168.1.10", None, "/8", ""),
        ("24 bits", "192.168.1.10", "192.168.1.1", None, ""),
        ("next network", "192.168.2.10", "192.168.1.1", None, "cidr.far"),
        ("16 bits", "192.168.2.10", "192.168.1.1", "/16", ""),
        ("mask", "192.168.1.9", "192.168.1.1", "/255.255.255.0", ""),
        ("glued on", "192.168.1.10", "192.168.1.1", "24", "cidr.far"),
        ("digits glued on", "192.168.1.124", "192.168.1.1", "24", ""),
        ("one address", "192.168.1.1", "192.168.1.1", "", ""),
        ("version 6", "fd00::9", "fd00::1", "/64", ""),
        ("other family", "fd00::9", "10.0.0.1", None, "cidr.far"),
        ("no address", None, "10.0.0.1", None, "cidr.far"),
        ("not an address", "here", "10.0.0.1", None, "cidr.far"),
    ),
)
def test_hosts_near_an_address(address, near, cidr, reason):
    hints = {"build_near_host_ip": near, "cidr": cidr}
    hints = {name: [value] for name, value in hints.items() if value is not None}

    assert judge(SimpleCIDRAffinityFilter, {"host_ip": address}, {"hints": hints}) == reason


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
    with pytest.raises(errors.InvalidRequest, match="build_near_host_ip"):
        judge(SimpleCIDRAffinityFilter, {"host_ip": "10.0.0.1"}, {"hints": hints})


@pytest.mark.parametrize(
    ("network", "address", "inside"),
    [
        ("10.0.0.7/24", "10.0.0.255", True),
        ("10.0.0.7/24", "10.0.1.0", False),
        ("10.0.0.7", "10.0.0.7", True),
        ("10.0.0.7/0", "192.0.2.1", True),
        ("fd00::/8", "fd12::1", True),
        ("fd00::/8", "10.0.0.1", False),
        ("10.0.0.0/8", None, False),
        ("10.0.0.0/8", "", False),
        ("10.0.0.0/8", "10.0.0", False),
    ],
)
def test_within_a_network(network, address, inside):
    assert addresses.within(network)(address) is inside


@pytest.mark.parametrize("network", ["", "10.0.0.1/33", "10.0.0.256/8", "/24", "nowhere/24"])
def test_a_network_that_is_none_is_named_with_its_field(network):
    with pytest.raises(errors.InvalidRequest, match=r"hints\.build_near_host_ip and cidr: "):
        addresses.within(network)


# --- names of hosts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tried", "reason"),
    rows(
        ("no retry", None, ""),
        ("nothing tried", [], ""),
        ("tried", [("h1", "n1")], "retry.tried"),
        ("tried second", [("h2", "n2"), ("h1", "n1")], "retry.tried"),
        ("another node of the host", [("h1", "n2")], ""),
        ("another host", [("h2", "n1")], ""),
        ("hosts have a case", [("H1", "n1")], ""),
        ("no node known", [("h1", None)], ""),
    ),
)
def test_both_names_must_have_been_tried(tried, reason):
    assert judge(RetryFilter, {}, {"tried": tried}) == reason


def test_a_retry_record_without_hosts_is_no_retry():
    assert judge(RetryFilter, {}, {"retry": objects.SchedulerRetries()}) == ""


def test_the_line_that_operators_look_for(caplog):
    with caplog.at_level(logging.INFO):
        judge(RetryFilter, {}, {"tried": [("h1", "n1")]})

    line = "Host [('h1', 'n1')] fails.  Previously tried hosts: [('h1', 'n1')]"
    assert line in [record.getMessage() for record in caplog.records]


IMAGE, HOST = "isolated.host_is_not", "isolated.image_is_not"


def isolated(images, hosts, image, *, restricted=True, **options):
    """The verdict on h1 for the image of this id; for none if it is None, a nameless one if ""."""
    request = a_request()
    if image is not None:
        request.image = objects.ImageMeta(**({"id": image} if image else {}))
    options |= {"isolated_images": images, "isolated_hosts": hosts}
    options["restrict_isolated_hosts_to_isolated_images"] = restricted
    return judge(IsolatedHostsFilter, {}, request, **options)


@pytest.mark.parametrize(
    ("images", "hosts", "restricted", "image", "reason"),
    rows(
        ("nothing isolated", [], [], True, "i1", ""),
        ("both", ["i1"], ["h1"], True, "i1", ""),
        ("only the image", ["i1"], ["h2"], True, "i1", IMAGE),
        ("only the host", ["i1"], ["h1"], True, "i2", HOST),
        ("neither", ["i1"], ["h2"], True, "i2", ""),
        ("only the image, open", ["i1"], ["h2"], False, "i1", IMAGE),
        ("only the host, open", ["i1"], ["h1"], False, "i2", ""),
        ("images that can go nowhere", ["i1"], [], True, "i1", IMAGE),
        ("hosts that run nothing", [], ["h1"], True, "i1", HOST),
        ("hosts that run anything", [], ["h1"], False, "i1", ""),
        ("no image", ["i1"], ["h1"], True, None, HOST),
        ("no image, another host", ["i1"], ["h2"], True, None, ""),
        ("image without id", ["i1"], ["h1"], True, "", HOST),
        ("hosts have a case", ["i1"], ["H1"], True, "i2", ""),
        ("images have a case", ["I1"], ["h1"], True, "i1", HOST),
    ),
)
def test_isolated_images_and_hosts(images, hosts, restricted, image, reason):
    assert isolated(images, hosts, image, restricted=restricted) == reason


def test_newton_needs_the_id_of_the_image():
    assert isolated(["i1"], ["h1"], None, semantics="newton") == HOST
    assert isolated([], ["h1"], "", semantics="newton") == HOST
    with pytest.raises(errors.InvalidRequest, match="image.id"):
        isolated(["i1"], ["h1"], "", semantics="newton")


def test_all_hosts_pass():
    host = {"total_usable_ram_mb": 0, "service": {"disabled": True, "forced_down": True}}

    assert judge(AllHostsFilter, host, {"flavor": {"memory_mb": 9**9}}) == ""
