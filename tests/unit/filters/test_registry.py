"""(options) -> the filters that run, and what is said of names that lead nowhere."""

import pytest

from scheduler import errors
from scheduler.filters import registry
from scheduler.filters.base import BaseHostFilter
from scheduler.filters.ram_filter import RamFilter
from tests.builders import a_conf

ALL = {each.__name__ for each in registry.all_filters()}
RAM, CORE = (
    "nova.scheduler.filters.ram_filter.RamFilter",
    "scheduler.filters.core_filter.CoreFilter",
)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["nova.scheduler.filters.all_filters"], ALL),
        (["nova.scheduler.filters.standard_filters"], ALL),
        (["scheduler.filters.all_filters"], ALL),
        ([RAM, CORE], {"RamFilter", "CoreFilter"}),
        (["nova.scheduler.filters.BaseHostFilter"], {"BaseHostFilter"}),
        ([], set()),
    ],
)
def test_what_is_available(paths, names):
    found = registry.available(a_conf(available_filters=paths))

    assert set(found) == names
    assert found.get("BaseHostFilter", BaseHostFilter) is BaseHostFilter
    assert found.get("RamFilter", RamFilter) is RamFilter
    assert registry.names_available(a_conf(available_filters=paths)) == names


@pytest.mark.parametrize("option", ["enabled_filters", "baremetal_enabled_filters"])
def test_filters_run_in_order_and_have_the_options(option):
    conf = a_conf(**{option: ["RamFilter", "CoreFilter", "", "RamFilter"]})

    filters = registry.load_filters(conf, option)

    assert [each.name for each in filters] == ["RamFilter", "CoreFilter", "RamFilter"]
    assert filters[0] is filters[2]
    assert all(each.conf is conf for each in filters)


@pytest.mark.parametrize("option", ["enabled_filters", "baremetal_enabled_filters"])
def test_every_unknown_name_is_told_with_its_option(option):
    conf = a_conf(**{option: ["RamFilter", "Nope", "CoreFilter", "Neither"]})

    with pytest.raises(errors.SchedulerHostFilterNotFound) as caught:
        registry.load_filters(conf, option)

    assert str(caught.value) == (
        "Scheduler Host Filter Nope, Neither could not be found. It is named in [filter_scheduler] "
        f"{option}, but is neither among [filter_scheduler] available_filters nor in "
        "/etc/nova/scheduler.d"
    )
    assert caught.value.kwargs["filter_name"] == "Nope, Neither"
