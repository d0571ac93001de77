"""What every filter that ships here must keep to, whatever it decides."""

import pathlib
import re

import pytest
from hypothesis import HealthCheck, given, settings

from scheduler import filters, objects
from scheduler.engine.evaluation import FilterChain
from scheduler.filters import registry
from scheduler.filters.base import BaseHostFilter, HostFilter
from tests.builders import a_conf, a_fleet, candidates, examples
from tests.world import random_fleets

CONF = a_conf()
ALL = [pytest.param(cls(CONF), id=cls.__name__) for cls in filters.all_filters()]
FEW = settings(
    max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

#: Filters that only decide for the first instance of a request, and those that check rebuilds.
ONCE = """
AggregateImagePropertiesIsolation AggregateInstanceExtraSpecsFilter AggregateMultiTenancyIsolation
AggregateTypeAffinityFilter AllHostsFilter AvailabilityZoneFilter ComputeCapabilitiesFilter
ComputeFilter DifferentHostFilter ImagePropertiesFilter IsolatedHostsFilter SameHostFilter
SimpleCIDRAffinityFilter TrustedFilter
"""
ON_REBUILD = ["AggregateImagePropertiesIsolation", "ImagePropertiesFilter", "IsolatedHostsFilter"]


def _verdicts(each, table, request):
    return [
        (reason.code, mask.tolist()) for reason, mask in each.conditions(candidates(table), request)
    ]


@pytest.mark.parametrize("each", ALL)
def test_it_runs_when_it_should(each):
    assert each.run_filter_once_per_request is (each.name in ONCE.split())
    assert each.RUN_ON_REBUILD is (each.name in ON_REBUILD)
    assert type(each)(CONF).conf is CONF


@pytest.mark.parametrize("each", ALL)
@FEW
@given(table=random_fleets.fleets(), request=random_fleets.requests())
def test_both_forms_agree_and_change_nothing(each, table, request):
    before = random_fleets.snapshot(table), request.obj_to_primitive()
    declared = {reason.code for reason in each.reasons}

    found = FilterChain([each]).run(candidates(table), request)

    [count] = found.counts
    passing = {state.host for state in candidates(table) if each.host_passes(state, request)}
    assert {state.host for state in found.hosts} == passing
    assert set(count.removed) <= declared
    assert sum(count.removed.values()) == count.start - count.end
    assert {code for code, _mask in _verdicts(each, table, request)} <= declared
    assert (random_fleets.snapshot(table), request.obj_to_primitive()) == before


@pytest.mark.parametrize("each", ALL)
@FEW
@given(
    table=random_fleets.fleets(), request=random_fleets.requests(), other=random_fleets.requests()
)
def test_a_decision_leaves_nothing_behind(each, table, request, other):
    first = _verdicts(each, table, request)
    _verdicts(each, table, other)

    assert _verdicts(each, table, request) == first


@pytest.mark.parametrize("each", ALL)
@pytest.mark.parametrize("table", [random_fleets.minimal_fleet(), a_fleet()], ids=["bare", "empty"])
def test_it_copes_with_next_to_nothing(each, table):
    hosts = candidates(table)
    found = FilterChain([each]).run(hosts, random_fleets.minimal_request())

    assert len(found.hosts) <= len(hosts)


@pytest.mark.parametrize("each", ALL)
@FEW
@given(table=random_fleets.fleets(max_size=1), request=random_fleets.requests())
def test_limits_are_numbers_or_those_of_cells(each, table, request):
    [state] = candidates(table)

    limits = each.limits(state, request)

    assert {name for name, limit in limits.items() if type(limit) not in (int, float)} <= {
        "numa_topology"
    }
    assert objects.SchedulerLimits.from_dict(limits).to_dict().keys() == limits.keys()


def test_reasons_have_codes_of_their_own():
    codes = [reason.code for cls in filters.all_filters() for reason in cls.reasons]

    assert len(set(codes)) == len(codes)
    assert [code for code in codes if not re.fullmatch(r"[a-z_]+\.[a-z_]+", code)] == []


def test_every_module_is_listed():
    package = pathlib.Path(filters.__file__).parent
    defining = {
        path.stem
        for path in package.glob("*.py")
        if path.stem not in ("base", "bounds", "filter_properties")  # bases, and a wrapper
        and re.search(r"^class \w+\([\w., ]*Filter\):", path.read_text(), re.M)
    }

    assert defining == set(registry.MODULES)
    assert all(issubclass(cls, HostFilter) for cls in filters.all_filters())
    assert HostFilter.filter_all is BaseHostFilter.filter_all
