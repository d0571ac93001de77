"""What a case decides, as far as no recording shows it: what is left out, logged or refused."""

import pytest

from scheduler import errors
from scheduler.evaluation.cases import CURRENT, NEWTON
from scheduler.evaluation.deciding import configuration, decide
from scheduler.filters import BaseHostFilter
from tests.unit.evaluation.builders import UUIDS, a_case, a_fleet, a_request

H1, H2 = (["h1", "h1"], ["h2", "h2"])


class BrokenFilter(BaseHostFilter):
    """A filter of a site, with a fault."""

    def host_passes(self, host_state, spec_obj):
        return 1 / 0


@pytest.fixture(params=[CURRENT, NEWTON], ids=lambda each: each.name)
def either(request):
    return request.param


@pytest.mark.parametrize(
    ("fleet", "change"),
    [
        ((4096, 4096), {}),
        ((4096, 2048), {"filter_scheduler": {"host_subset_size": 2}}),
        ((4096, 3072, 1024), {"instance_uuids": UUIDS[:2]}),
    ],
    ids=["equal weights", "a subset", "equal weights for the second instance"],
)
def test_a_choice_that_is_not_forced_is_left_out(fleet, change):
    answer = decide(a_case(a_fleet(*fleet), **change), CURRENT)
    assert "weights" in answer
    assert not {"selected", "state_after", "alternates", "error"} & answer.keys()


def test_an_error_that_nobody_expected_is_logged_and_ends_only_its_request(either, caplog):
    ours = [f"{__name__}.BrokenFilter"]
    change = {"available_filters": ours, "enabled_filters": ["BrokenFilter"]}
    answer = decide(a_case(a_fleet(4096), filter_scheduler=change), either)
    assert (answer["crash"], answer["error"]) == (True, "ZeroDivisionError")
    assert "suite/d1" in caplog.text


def test_a_step_may_only_change_something(either):
    asked = [{"request": a_request(), "instance_uuids": [uuid]} for uuid in UUIDS[:2]]
    steps = [asked[0], {"delete_nodes": [["h1", "h1"]]}, asked[1]]
    first, changed, last = decide(a_case(a_fleet(4096, 3584), steps=steps), either)["steps"]
    assert (first["passed"], changed, last["passed"]) == ([H1, H2], {}, [H2])


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"filter_scheduler": {"no_such_option": 1}}, r"\[filter_scheduler\] no_such_option"),
        ({"DEFAULT": {"service_down_time": "soon"}}, "service_down_time"),
        ({"scheduler": {"max_attempts": 0}}, "max_attempts"),
        ({"scheduler": {"max_attempts": [1]}}, "max_attempts"),
    ],
)
def test_what_cannot_be_used_is_named(config, part):
    with pytest.raises(errors.ConfigurationError, match=part):
        configuration(a_case(a_fleet(1), config=config), CURRENT)
