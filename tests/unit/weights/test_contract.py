"""What every weigher that ships here must keep to, whatever it prefers."""

import pathlib
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from scheduler import weights
from scheduler.weights import registry
from scheduler.weights.base import HostWeigher
from tests.builders import a_conf, a_fleet, candidates, examples
from tests.world import random_fleets

CONF = a_conf()
ALL = [pytest.param(cls(CONF), id=cls.__name__) for cls in weights.all_weighers()]
FEW = settings(
    max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("each", ALL)
@FEW
@given(
    table=random_fleets.fleets(), request=random_fleets.requests(), other=random_fleets.requests()
)
def test_both_forms_agree_and_change_nothing(each, table, request, other):
    before = random_fleets.snapshot(table), request.obj_to_primitive()
    hosts = candidates(table)

    raw = each.raw(hosts, request)

    assert raw.tolist() == [each._weigh_object(state, request) for state in hosts]
    multipliers = np.broadcast_to(each.multipliers(hosts), len(hosts))
    assert multipliers.tolist() == [each.weight_multiplier(state) for state in hosts]
    each.raw(hosts, other)
    assert each.raw(hosts, request).tolist() == raw.tolist()
    assert (random_fleets.snapshot(table), request.obj_to_primitive()) == before


@pytest.mark.parametrize("each", ALL)
@pytest.mark.parametrize("table", [random_fleets.minimal_fleet(), a_fleet()], ids=["bare", "empty"])
def test_it_copes_with_next_to_nothing(each, table):
    hosts = candidates(table)

    nothing = 100 if each.name == "PCIWeigher" else 0  # no devices are best
    assert each.raw(hosts, random_fleets.minimal_request()).tolist() == [nothing] * len(hosts)


@pytest.mark.parametrize("each", ALL)
def test_the_multiplier_is_an_option(each):
    conf = a_conf()
    if each.name == "MetricsWeigher":
        conf.set_override("weight_multiplier", 7.5, group="metrics")
    else:
        conf.set_override(each.multiplier_option, 7.5, group="filter_scheduler")
    sign = -1 if each.name == "BuildFailureWeigher" else 1

    assert type(each)(conf).multipliers(candidates(a_fleet({}, {}))) == sign * 7.5


@pytest.mark.parametrize("each", ALL)
def test_aggregates_override_the_option(each):
    table = a_fleet({"aggregates": [{each.multiplier_option: "2.5"}]}, {})
    sign = -1 if each.name == "BuildFailureWeigher" else 1

    first, second = each.multipliers(candidates(table)).tolist()

    assert first == sign * 2.5
    assert second == sign * each.multiplier


def test_every_module_is_listed():
    package = pathlib.Path(weights.__file__).parent
    pattern = re.compile(r"^class \w+\(_?\w*Weigher\):", re.M)
    defining = {
        path.stem
        for path in package.glob("*.py")
        if path.stem != "base" and pattern.search(path.read_text())
    }

    assert defining == set(registry.MODULES)
    assert all(issubclass(cls, HostWeigher) for cls in weights.all_weighers())
