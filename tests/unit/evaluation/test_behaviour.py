"""Labels, and the configuration that a case decides with."""

import pytest

from scheduler import errors
from scheduler.evaluation import behaviour
from scheduler.evaluation.behaviour import CURRENT, NEWTON
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


def test_what_a_case_leaves_out_has_its_default():
    case = a_case(FLEET, config={"DEFAULT": {"service_down_time": 300}}, driver="chance_scheduler")
    conf = CURRENT.conf(case)
    assert conf.service_down_time == 300
    assert conf.scheduler.driver == "chance_scheduler"
    assert conf.scheduler.semantics == "current"
    assert conf.filter_scheduler.enabled_filters == ["RamFilter"]
    assert conf.filter_scheduler.host_subset_size == 1
    assert NEWTON.conf(case).scheduler.semantics == "newton"


def test_cases_of_one_configuration_share_it():
    assert CURRENT.conf(a_case(FLEET)) is CURRENT.conf(a_case(FLEET))
    assert CURRENT.conf(a_case(FLEET)) is not NEWTON.conf(a_case(FLEET))


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
        CURRENT.conf(a_case(FLEET, config=config))
