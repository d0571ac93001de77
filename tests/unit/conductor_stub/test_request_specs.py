"""The request as a legacy dict, against the recorded shapes."""

from __future__ import annotations

import json

import pytest

from conductor_stub import request_specs
from scheduler import objects
from tests.unit.conductor_stub import builders


def test_a_newton_compute_gets_the_recorded_shape():
    recorded = builders.wire("derived-newton-build_and_run_instance-v4.0")["request_spec"]
    image = builders.wire("derived-newton-build_and_run_instance-v4.0")["image"]
    instance = builders.recorded_instance()

    made = request_specs.build_request_spec(image, [instance])

    assert made["image"] == recorded["image"]
    assert made["num_instances"] == recorded["num_instances"]
    assert _without_later_fields(made["instance_type"]) == recorded["instance_type"]
    theirs, ours = recorded["instance_properties"], made["instance_properties"]
    assert ours["system_metadata"] == theirs["system_metadata"]
    assert ours["name"] == theirs["name"]
    assert ours["pci_requests"] == theirs["pci_requests"]
    assert ours["security_groups"] == theirs["security_groups"]
    assert set(theirs) <= set(ours)


def _without_later_fields(flavor):
    return {key: value for key, value in flavor.items() if key != "description"}


def test_the_dict_is_json_and_makes_the_same_request_again():
    instance = builders.instance(availability_zone="az1")

    made = json.loads(json.dumps(request_specs.build_request_spec({}, [instance, instance])))
    spec = objects.RequestSpec.from_primitives(made, {})

    assert made["image"] == {}
    assert spec.num_instances == 2
    assert (spec.instance_uuid, spec.availability_zone) == (instance.uuid, "az1")
    assert (spec.flavor.name, spec.memory_mb) == ("m1.small", 2048)


@pytest.mark.parametrize(
    ("flavor", "copied"),
    [
        pytest.param(None, [], id="no flavor"),
        pytest.param(
            builders.flavor(extra_specs={"hw:numa_cpus.0": "0,1", "hw:mem_page_size": "large"}),
            [*request_specs.FLAVOR_COLUMNS, "extra_hw:numa_cpus.0"],
            id="only NUMA extra specs",
        ),
        pytest.param(
            objects.Flavor(id=1, name="half", memory_mb=1), ["id", "name", "memory_mb"], id="half"
        ),
    ],
)
def test_the_flavor_is_copied_as_far_as_it_goes(flavor, copied):
    assert list(request_specs.flavor_copies(flavor)) == [f"instance_type_{key}" for key in copied]


def test_a_given_request_is_used_instead_of_the_instances():
    spec = objects.RequestSpec(
        num_instances=1,
        instance_uuid=builders.UUIDS[0],
        availability_zone="asked",
        flavor=builders.flavor(),
    )

    made = request_specs.legacy_spec({}, [builders.instance(availability_zone="other")], spec)

    assert made["instance_properties"]["availability_zone"] == "asked"
    assert made["instance_type"]["name"] == "m1.small"
    assert request_specs.legacy_spec({}, [], made) is made
