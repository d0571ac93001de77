"""(flavors on the host or in its aggregates, flavor asked for) -> together or not."""

from __future__ import annotations

import pytest

from scheduler import objects
from scheduler.filters.type_filter import AggregateTypeAffinityFilter, TypeAffinityFilter
from scheduler.hosts.instances import TrackedInstance
from tests.builders import a_conf, a_host, a_request, verdict

OTHER, NOT_NAMED = ["type.other"], ["aggregate_type.not_named"]


@pytest.mark.parametrize(
    ("types", "flavor_id", "reasons"),
    [
        pytest.param([], 1, [], id="empty host"),
        pytest.param([1], 1, [], id="same"),
        pytest.param([1, 1], 1, [], id="all the same"),
        pytest.param([2], 1, OTHER, id="other"),
        pytest.param([1, 2], 1, OTHER, id="mixed"),
        pytest.param([None], 1, OTHER, id="not known"),
    ],
)
def test_servers_on_the_host_decide(types, flavor_id, reasons):
    host = a_host()
    for number, instance_type_id in enumerate(types):
        instance = TrackedInstance(f"u{number}", "h1", "n1", instance_type_id=instance_type_id)
        host.table.put_instance("h1", instance.uuid, instance)
    request = a_request(flavor={"id": flavor_id})

    assert verdict(TypeAffinityFilter(a_conf()), host, request) == reasons


@pytest.mark.parametrize(
    ("metadata", "reasons"),
    [
        pytest.param([], [], id="no aggregate"),
        pytest.param([{"other": "m1.small"}], [], id="other metadata"),
        pytest.param([{"instance_type": "m1.tiny"}], [], id="named"),
        pytest.param([{"instance_type": "m1.small, m1.tiny"}], [], id="one of several"),
        pytest.param(
            [{"instance_type": "m1.small"}, {"instance_type": "m1.tiny"}], [], id="second"
        ),
        pytest.param([{"instance_type": "m1.small"}], NOT_NAMED, id="another"),
        pytest.param([{"instance_type": "M1.TINY"}], NOT_NAMED, id="names have a case"),
        pytest.param([{"instance_type": ""}], NOT_NAMED, id="none at all"),
    ],
)
def test_aggregates_name_flavors(metadata, reasons):
    aggregate_type = AggregateTypeAffinityFilter(a_conf())

    assert verdict(aggregate_type, a_host(aggregates=metadata), a_request()) == reasons


def test_a_request_without_a_flavor_names_none():
    request = objects.RequestSpec(num_instances=1)
    named, unnamed = a_host(aggregates=[{"instance_type": "m1.tiny"}]), a_host()

    assert verdict(AggregateTypeAffinityFilter(a_conf()), named, request) == NOT_NAMED
    assert verdict(AggregateTypeAffinityFilter(a_conf()), unnamed, request) == []
