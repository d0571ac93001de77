"""Filters of somebody else's, in the ways that Nova's contract allows."""

import pytest

from scheduler.filters.base import BaseHostFilter, HostFilter
from scheduler.filters.ram_filter import RamFilter
from tests.builders import a_conf, a_fleet, a_host, a_request, candidates

REBUILD = {"_nova_check_type": ["rebuild"]}


class Named(BaseHostFilter):
    """Passes the host that the request's project names."""

    def host_passes(self, host_state, spec_obj):
        return host_state.host == spec_obj.project_id


class One(BaseHostFilter):
    """The same, in the method that Nova's base class calls per host."""

    def _filter_one(self, host_state, spec_obj):
        return host_state.host == spec_obj.project_id


class Both(Named):
    """Asks the method of the base class as well."""

    def _filter_one(self, host_state, spec_obj):
        return host_state.host == "h1" or super()._filter_one(host_state, spec_obj)


@pytest.mark.parametrize(
    ("cls", "hints", "passing"),
    [
        pytest.param(Named, None, ["h2"], id="host_passes"),
        pytest.param(Named, REBUILD, ["h1", "h2", "h3"], id="host_passes, rebuild"),
        pytest.param(One, None, ["h2"], id="_filter_one"),
        pytest.param(One, REBUILD, ["h2"], id="_filter_one, rebuild"),
        pytest.param(Both, None, ["h1", "h2"], id="_filter_one of the base"),
        pytest.param(Both, REBUILD, ["h1", "h2", "h3"], id="_filter_one of the base, rebuild"),
    ],
)
@pytest.mark.parametrize("also_rebuilds", [False, True])
def test_what_passes(cls, hints, passing, also_rebuilds):
    each = cls("options")
    each.RUN_ON_REBUILD = also_rebuilds
    if also_rebuilds:
        passing = ["h1", "h2"] if cls is Both else ["h2"]
    hosts = candidates(a_fleet({}, {}, {})).states()

    passed = each.filter_all(hosts, a_request(project_id="h2", hints=hints))

    assert [state.host for state in passed] == passing
    assert each.conf == "options"


def test_a_filter_that_filters_nothing_says_so():
    hosts = candidates(a_fleet({}))

    with pytest.raises(NotImplementedError, match="BaseHostFilter does not implement host_passes"):
        BaseHostFilter().host_passes(hosts.states()[0], a_request())
    with pytest.raises(NotImplementedError, match="HostFilter does not implement conditions"):
        HostFilter().conditions(hosts, a_request())


@pytest.mark.parametrize(
    ("memory_mb", "passes", "limits"),
    [(512, True, {"kept": 1, "memory_mb": 6144.0}), (5000, False, {"kept": 1})],
)
def test_only_a_host_that_passes_is_given_limits(memory_mb, passes, limits):
    state = a_host()
    state.limits["kept"] = 1

    assert RamFilter(a_conf()).host_passes(state, a_request(flavor={"memory_mb": memory_mb})) is (
        passes
    )
    assert state.limits == limits
