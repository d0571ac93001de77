"""Edge cases of reference page scheduling, section 15, by their numbers."""

import pytest

from scheduler.filters.base import BaseHostFilter
from tests.builders import a_request
from tests.unit.drivers.scheduling import a_clock, a_driver, select
from tests.unit.evaluation.builders import UUIDS, a_fleet, a_node, a_service

DRIVERS = ["filter_scheduler", "caching_scheduler", "chance_scheduler", "fake_scheduler"]


class SecondServerFilter(BaseHostFilter):
    """Third-party code: h1 is not for the first server it is asked about."""

    def __init__(self, conf=None):
        super().__init__(conf)
        self.asked = []

    def host_passes(self, host_state, spec_obj):
        self.asked.append(host_state.host)
        return host_state.host != "h1" or self.asked.count("h1") > 1


def foreign(*names):
    return {
        "available_filters": ["nova.scheduler.filters.all_filters", f"{__name__}.{names[0]}"],
        "enabled_filters": list(names),
    }


@pytest.fixture(params=["current", "newton"])
def semantics(request):
    return {"semantics": request.param}


@pytest.mark.parametrize(
    ("size", "expected"), [(9, {"h1", "h2", "h3"}), (2, {"h1", "h2"}), (0, {"h1"}), (-3, {"h1"})]
)
def test_6_and_7_the_size_of_the_subset(size, expected):
    driver, nothing = a_driver(a_fleet(3072, 2048, 1024), host_subset_size=size), {"memory_mb": 0}
    # With 60 draws from three hosts, one of them stays out once in 10^10.
    drawn = [select(driver, a_request(flavor=nothing)) for _again in range(60)]
    assert {host for [host] in drawn} == expected


def test_8_a_host_rejected_for_the_first_server_stays_out(semantics):
    driver = a_driver(a_fleet(8192, 1024), options=semantics, **foreign("SecondServerFilter"))
    assert select(driver, a_request(), *UUIDS[:2]) == ["h2", "h2"]
    assert driver.settings.policy.chain.filters[0].asked == ["h1", "h2", "h2"]
    assert select(driver, a_request(), UUIDS[2]) == ["h1"]


def test_31_a_compute_node_without_service_is_not_offered_and_told_of(caplog):
    clock = a_clock()
    driver = a_driver(a_fleet(1, 4096, 1, services=[a_service("h2")]), clock=clock)
    for seconds in (0, 59):  # its service may be about to write its record
        clock.now += seconds
        assert select(driver, a_request()) == ["h2"]
    assert [each for each in caplog.records if each.levelname == "WARNING"] == []
    for _again in range(2):
        clock.now += 1
        driver.host_manager.refresh()
    told = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert told == ["No compute service record found for host h1; likewise 1 other host(s)"]


def test_one_line_for_many_hosts_and_each_only_once(caplog):
    nodes = [a_node(f"h{n}", n, free_disk_gb=1, disk_available_least=9) for n in range(1, 4)]
    odd = {**nodes[0], "stats": '{"num_instances": "many"}'}
    driver = a_driver(a_fleet(1, compute_nodes=[odd, *nodes[1:]]))
    for _again in range(3):
        driver.host_manager.refresh()
    more = "has more disk space than database expected (9 GB > 1 GB); likewise 2 other host(s)"
    told = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert sorted(told) == [
        "Compute node h1 reports 'many' as num_instances; counted as 0",
        f"Host h1 {more}",
    ]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("hosts", [0, 1])
def test_50_no_servers_need_no_hosts(driver, hosts, semantics):
    request = a_request()
    request.num_instances = 0
    offered = a_driver(a_fleet(*[4096] * hosts), driver, options=semantics)
    assert offered.select_destinations(None, request, None) == []


def test_the_fake_driver_places_nothing():
    driver = a_driver(a_fleet(4096), "fake_scheduler")
    assert driver.select_destinations(None, a_request(), UUIDS[:2]) == []
    assert driver.run_periodic_tasks(None) is None
    assert driver.hosts_up(None, "compute") == ["h1"]
