"""Labels of cases, and the configuration that a case is decided with."""

import pytest

from scheduler import errors
from scheduler.evaluation import behaviour
from scheduler.evaluation.behaviour import CURRENT, NEWTON, Configuration
from tests.unit.evaluation.builders import a_case, a_fleet

FLEET = a_fleet(1)


@pytest.mark.parametrize(
    ("label", "wanted", "expected"),
    [
        ("all", "all", (CURRENT, NEWTON)),
        ("all", "newton", (NEWTON,)),
        ("newton", "all", (NEWTON,)),
        ("newton", "2026", ()),
        ("2026", "2026", (CURRENT,)),
    ],
)
def test_labels(label, wanted, expected):
    assert behaviour.of_case(a_case(FLEET, semantics=label), wanted) == expected


def test_an_unknown_label_is_named():
    with pytest.raises(errors.BadCase, match="suite/d1: semantics 'old'"):
        behaviour.of_case(a_case(FLEET, semantics="old"))


def test_nothing_of_one_case_is_left_for_the_next():
    configuration = Configuration()
    given = {"service_down_time": 5, "report_interval": 10}
    case = a_case(FLEET, config={"DEFAULT": given}, driver="chance_scheduler")
    conf = configuration.for_case(case, NEWTON)
    assert (conf.scheduler.driver, conf.scheduler.semantics) == ("chance_scheduler", "newton")
    assert conf.filter_scheduler.enabled_filters == ["RamFilter"]
    conf = configuration.for_case(a_case(FLEET), CURRENT)
    assert (conf.service_down_time, conf.report_interval) == (60, 10)
    assert (conf.scheduler.driver, conf.scheduler.semantics) == ("filter_scheduler", "current")


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"filter_scheduler": {"no_such_option": 1}}, r"\[filter_scheduler\] no_such_option"),
        ({"DEFAULT": {"service_down_time": "soon"}}, "service_down_time"),
        ({"scheduler": {"max_attempts": 0}}, "max_attempts"),
    ],
)
def test_what_cannot_be_used_is_named(config, part):
    with pytest.raises(errors.ConfigurationError, match=part):
        Configuration().for_case(a_case(FLEET, config=config), CURRENT)
