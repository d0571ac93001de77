"""The chance driver looks at nothing but liveness and the hosts to be ignored."""

import pytest

from scheduler import errors
from tests.builders import a_request
from tests.unit.drivers.scheduling import a_driver, select
from tests.unit.evaluation.builders import UUIDS, a_fleet, a_node, a_service


def chance(fleet, semantics="current", **how):
    return a_driver(fleet, "chance_scheduler", options={"semantics": semantics}, **how)


@pytest.mark.parametrize(
    ("ignored", "expected"),
    [
        (None, ["h1", "h2"]),
        ([], ["h1", "h2"]),
        (["h2"], ["h1"]),
        (["H2"], ["h1", "h2"]),  # unlike the other drivers it compares case
    ],
)
def test_hosts_it_draws_from(ignored, expected):
    """That they are those that are up: test_nothing_to_draw_from, and the host manager's tests."""
    driver = chance(a_fleet(0, 0))
    drawn = [select(driver, a_request(ignore_hosts=ignored)) for _again in range(40)]
    assert {host for [host] in drawn} == set(expected)


@pytest.mark.parametrize(
    ("fleet", "ignored", "reason"),
    [
        (a_fleet(), None, "Is the appropriate service running?"),
        (a_fleet(0, services=[a_service("h1", disabled=True)]), ["h1"], "Is the appropriate"),
        (a_fleet(0), ["h1"], "Could not find another compute"),
    ],
)
def test_nothing_to_draw_from(fleet, ignored, reason):
    with pytest.raises(errors.NoValidHost, match=reason):
        select(chance(fleet), a_request(ignore_hosts=ignored))


@pytest.mark.parametrize(
    ("semantics", "hosts", "count", "distinct"),
    [
        ("current", 3, 3, {3}),
        ("current", 3, 2, {2}),
        ("current", 2, 4, {1, 2}),
        ("newton", 3, 3, {1, 2, 3}),
    ],
)
def test_whether_servers_share_hosts(semantics, hosts, count, distinct):
    driver = chance(a_fleet(*[0] * hosts), semantics)
    # Three servers on one host of three: once in nine draws, so 120 draws miss it once in 10^6.
    drawn = [select(driver, a_request(), *UUIDS[:count]) for _again in range(120)]
    assert all(len(each) == count for each in drawn)
    assert {len(set(each)) for each in drawn} == distinct


def test_one_selection_per_server_without_limits_or_alternates():
    driver = chance(a_fleet(0, 0))
    answer = driver.select_destinations(None, a_request(), UUIDS[:2], return_alternates=True)
    assert [len(each) for each in answer] == [1, 1]
    for [selection] in answer:
        number = int(selection.service_host[1:])
        assert selection.nodename == selection.service_host
        assert selection.compute_node_uuid == a_node("h", number)["uuid"]
        assert (selection.limits, selection.allocation_request) == (None, "null")


def test_the_log_line_names_the_host_also_without_a_manager(caplog):
    """As for callers up to Juno, whose builds ask the driver itself."""
    caplog.set_level("INFO")
    select(chance(a_fleet(0)), a_request())
    assert ": selected [h1] (" in caplog.text


def test_the_number_of_the_request_counts_where_no_server_is_named():
    request = a_request()
    for count in (0, 3):
        request.num_instances = count
        assert len(select(chance(a_fleet(0)), request)) == count


def test_nothing_is_consumed():
    driver = chance(a_fleet(4096))
    for _again in range(2):
        select(driver, a_request(), UUIDS[0])
    assert driver.host_manager.state_of("h1").free_ram_mb == 4096


def test_a_live_service_without_compute_node_is_passed_over():
    fleet = a_fleet(0, services=[a_service("h1"), a_service("h2")])
    driver = chance(fleet)
    assert {select(driver, a_request())[0] for _again in range(20)} == {"h1"}
    with pytest.raises(errors.ComputeHostNotFound, match="h2"):
        select(driver, a_request(ignore_hosts=["h1"]))


def test_a_filter_that_does_not_exist_does_not_matter_to_it():
    driver = chance(a_fleet(0), enabled_filters=["NoSuchFilter"])
    assert select(driver, a_request()) == ["h1"]
