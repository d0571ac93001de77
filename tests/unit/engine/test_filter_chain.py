"""What the chain leaves, counts, notes and tells."""

import logging

import numpy as np
import pytest

from scheduler.engine.evaluation import FilterChain, is_columnar, log_counts
from scheduler.filters.base import BaseHostFilter, HostFilter, Reason, Refused
from scheduler.filters.core_filter import CoreFilter
from scheduler.filters.ram_filter import RamFilter
from tests.builders import a_conf, a_fleet, a_request, candidates, names

REBUILD = {"_nova_check_type": ["rebuild"]}


class Listed(BaseHostFilter):
    """Passes the hosts listed, host by host."""

    def __init__(self, *hosts):
        super().__init__()
        self.hosts = hosts

    def host_passes(self, host_state, spec_obj):
        return host_state.host in self.hosts


class Backwards(BaseHostFilter):
    """Takes all hosts at once, and turns them round."""

    def filter_all(self, filter_obj_list, spec_obj):
        return reversed(filter_obj_list)


class Stop(BaseHostFilter):
    """Ends the chain."""

    def filter_all(self, filter_obj_list, spec_obj):
        return None


class LimitingRam(RamFilter):
    """Asked host by host; in a rebuild, too."""

    RUN_ON_REBUILD = True

    def host_passes(self, host_state, spec_obj):
        return super().host_passes(host_state, spec_obj)


class FromTheSecond(RamFilter):
    """Asked about all servers but the first."""

    def run_filter_for_index(self, index):
        return index > 0


class NeverOne(RamFilter):
    """Passes no single host."""

    def _filter_one(self, host_state, spec_obj):
        return False


def chain_of(*filters):
    return FilterChain(filters)


RAM = RamFilter(a_conf())
POOR, RICH = {"free_ram_mb": -4000}, {}


@pytest.mark.parametrize(
    ("filters", "left", "counts", "notes"),
    [
        pytest.param(
            [Listed("h1", "h3")],
            *(["h1", "h3"], [("Listed", 3, 2, {"unspecified": 1})], [(0, "unspecified", [1])]),
            id="row by row",
        ),
        pytest.param(
            [RAM],
            *(["h1", "h3"], [("RamFilter", 3, 2, {"ram.insufficient": 1})]),
            [(0, "ram.insufficient", [1])],
            id="columns",
        ),
        pytest.param(
            [Listed("h1", "h2", "h3")], ["h1", "h2", "h3"], [("Listed", 3, 3, {})], [], id="nobody"
        ),
        pytest.param(
            [Backwards(), Listed("h2", "h3")],
            ["h3", "h2"],
            [("Backwards", 3, 3, {}), ("Listed", 3, 2, {"unspecified": 1})],
            [(1, "unspecified", [0])],
            id="all at once, in another order",
        ),
        pytest.param(
            [Stop(), Listed("h1")],
            *([], [("Stop", 3, 0, {"unspecified": 3})], [(0, "unspecified", [0, 1, 2])]),
            id="None ends the chain",
        ),
    ],
)
def test_what_is_left_counted_and_noted(filters, left, counts, notes):
    ran = []

    found = chain_of(*filters).run(
        candidates(a_fleet(RICH, POOR, RICH)), a_request(), after=ran.append
    )

    assert names(found.hosts) == left
    assert found.hosts.rows.dtype == np.int64
    assert [(c.name, c.start, c.end, c.removed) for c in found.counts] == counts
    assert removed(found) == notes
    assert ran == [count[0] for count in counts]


def removed(found):
    """Per number of a filter and reason code the rows that were removed."""
    return [
        (number, code, np.flatnonzero(found.of_row == place).tolist())
        for place, (number, code) in enumerate(found.reasons, 1)
    ]


@pytest.mark.parametrize(
    ("filters", "hints", "limits"),
    [
        pytest.param([RAM, CoreFilter(a_conf())], None, {"memory_mb": 6144.0, "vcpu": 64.0}),
        pytest.param([RAM, LimitingRam(a_conf())], REBUILD, {"memory_mb": 6144.0}, id="one"),
        pytest.param([RAM], REBUILD, {}, id="a rebuild asks neither"),
        pytest.param([Listed("h1")], None, {}, id="no limits"),
    ],
)
def test_limits(filters, hints, limits):
    [state] = candidates(a_fleet({}))

    assert chain_of(*filters).limits(state, a_request(hints=hints)) == limits
    state.limits["own"] = 5
    assert chain_of(*filters).limits(state, a_request(hints=hints)) == {**limits, "own": 5}


def test_columnar():
    class OwnFilterAll(RamFilter):
        """Wants to see all hosts at once."""

        def filter_all(self, filter_obj_list, spec_obj):
            return filter_obj_list

    found = [is_columnar(each) for each in (RAM, LimitingRam(a_conf()), OwnFilterAll(a_conf()))]

    assert found == [True, False, False]
    assert not is_columnar(Listed())


def test_what_operators_search_for(caplog):
    with caplog.at_level(logging.DEBUG, "scheduler.engine.evaluation"):
        for chain in (chain_of(Listed("h1", "h2"), Listed()), chain_of()):
            log_counts(chain.run(candidates(a_fleet({}, {}, {})), a_request()).counts, "uuid-1")

    assert caplog.messages == [
        "Starting with 3 host(s)",
        "Filter Listed returned 2 host(s)",
        "Filter Listed returned 0 hosts",
        "Filtering removed all hosts for the request with instance ID 'uuid-1'. Filter results: "
        "['Listed: (start: 3, end: 2)', 'Listed: (start: 2, end: 0)']",
    ]


class Twice(HostFilter):
    """Refuses small hosts, and those in use; many are both."""

    SMALL, USED = Reason("twice.small", "small"), Reason("twice.used", "used")
    reasons = (SMALL, USED)

    def conditions(self, hosts, request):
        yield self.SMALL, hosts.free_ram_mb > 100
        yield self.USED, hosts.num_instances == 0


def test_a_host_is_refused_for_the_first_of_its_reasons():
    small, used = {"free_ram_mb": 100}, {"num_instances": 1}
    table = a_fleet(used, {**small, **used}, small, {}, used)

    found = chain_of(Twice()).run(candidates(table), a_request())

    assert names(found.hosts) == ["h4"]
    assert found.counts[0].removed == {"twice.small": 2, "twice.used": 2}
    assert removed(found) == [(0, "twice.small", [1, 2]), (0, "twice.used", [0, 4])]


class Telling(BaseHostFilter):
    """Refuses the *number*-th sixteen hosts, each in words of its own."""

    def __init__(self, number):
        super().__init__()
        self.number = number

    def host_passes(self, host_state, spec_obj):
        place = int(host_state.host[1:]) - 1
        return Refused(f"{self.number}, {place}") if place // 16 == self.number else True


def test_hosts_may_be_refused_for_more_reasons_than_a_byte_holds():
    table = a_fleet(*[{}] * 320)
    found = chain_of(*map(Telling, range(20))).run(candidates(table), a_request())
    assert len(removed(found)) == 320
    assert all(len(rows) == 1 for _number, _code, rows in removed(found))


def test_a_filter_says_itself_for_which_servers_it_runs():
    hosts = candidates(a_fleet(POOR, RICH))
    chain = chain_of(FromTheSecond(a_conf()))
    left = [names(chain.run(hosts, a_request(), index).hosts) for index in (0, 1)]
    assert left == [["h1", "h2"], ["h2"]]
    assert not chain.asks_only_columns


def test_a_filter_derived_from_one_that_ships_here_may_judge_single_hosts():
    found = chain_of(NeverOne(a_conf())).run(candidates(a_fleet(RICH)), a_request())
    assert names(found.hosts) == []
