"""The configuration that a case is decided with."""

import pytest

from scheduler import errors
from scheduler.evaluation.behaviour import CURRENT, NEWTON, Configuration
from tests.unit.evaluation.builders import a_case, a_fleet

FLEET = a_fleet(1)


@pytest.fixture
def configuration():
    return Configuration()


def test_what_a_case_leaves_out_has_its_default(configuration):
    case = a_case(FLEET, config={"DEFAULT": {"service_down_time": 300}}, driver="chance_scheduler")
    conf = configuration.of(case, CURRENT)
    assert conf.service_down_time == 300
    assert conf.scheduler.driver == "chance_scheduler"
    assert conf.scheduler.semantics == "current"
    assert conf.filter_scheduler.enabled_filters == ["RamFilter"]
    assert conf.filter_scheduler.host_subset_size == 1


def test_nothing_of_one_case_is_left_for_the_next(configuration):
    clamped = {"service_down_time": 5, "report_interval": 10}
    subset = {"host_subset_size": 0}
    configuration.of(a_case(FLEET, config={"DEFAULT": clamped}, filter_scheduler=subset), NEWTON)
    conf = configuration.of(a_case(FLEET), CURRENT)
    assert (conf.service_down_time, conf.report_interval) == (60, 10)
    assert conf.filter_scheduler.host_subset_size == 1
    assert conf.scheduler.semantics == "current"


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"filter_scheduler": {"no_such_option": 1}}, r"\[filter_scheduler\] no_such_option"),
        ({"DEFAULT": {"service_down_time": "soon"}}, "service_down_time"),
        ({"scheduler": {"max_attempts": 0}}, "max_attempts"),
    ],
)
def test_what_cannot_be_used_is_named(configuration, config, part):
    with pytest.raises(errors.ConfigurationError, match=part):
        configuration.of(a_case(FLEET, config=config), CURRENT)
    assert configuration.of(a_case(FLEET), CURRENT).service_down_time == 60
