"""(metadata of the host's aggregates, image properties) -> admitted or not."""

from __future__ import annotations

import logging

import pytest

from scheduler.filters.aggregate_image_properties_isolation import (
    AggregateImagePropertiesIsolation,
)
from tests.builders import a_conf, a_host, a_request, verdict

OTHER = ["image_isolation.other"]


@pytest.mark.parametrize(
    ("metadata", "image", "reasons"),
    [
        pytest.param([], {"os_type": "linux"}, [], id="no aggregate"),
        pytest.param([{"os_type": "linux"}], None, [], id="no image"),
        pytest.param([{"os_type": "linux"}], {}, [], id="image without the property"),
        pytest.param([{"os_type": "linux"}], {"os_type": "linux"}, [], id="same"),
        pytest.param([{"os_type": "linux"}], {"os_type": "windows"}, OTHER, id="other"),
        pytest.param([{"os_type": "windows, linux"}], {"os_type": "linux"}, [], id="listed"),
        pytest.param(
            [{"os_type": "x"}, {"os_type": "linux"}], {"os_type": "linux"}, [], id="united"
        ),
        pytest.param(
            [{"os_type": "linux", "hw_vm_mode": "xen"}],
            *({"os_type": "linux", "hw_vm_mode": "hvm"}, OTHER),
            id="all keys count",
        ),
        pytest.param(
            [{"hw_boot_menu": "true"}], {"hw_boot_menu": True}, OTHER, id="True has a case"
        ),
        pytest.param([{"hw_boot_menu": "True"}], {"hw_boot_menu": True}, [], id="True"),
        pytest.param([{"hw_boot_menu": "x"}], {"hw_boot_menu": False}, [], id="no is nothing"),
        pytest.param([{"hw_cpu_cores": "4"}], {"hw_cpu_cores": 4}, [], id="numbers"),
        pytest.param([{"availability_zone": "z"}], {"os_type": "linux"}, [], id="no property"),
        pytest.param(
            [{"availability_zone": "z", "os_type": "linux"}],
            *({"os_type": "windows"}, OTHER),
            id="a property after what is none",
        ),
    ],
)
def test_images_are_admitted(metadata, image, reasons):
    isolation = AggregateImagePropertiesIsolation(a_conf())

    assert verdict(isolation, a_host(aggregates=metadata), a_request(image=image)) == reasons


@pytest.mark.parametrize(
    ("namespace", "separator", "reasons"),
    [
        pytest.param(None, ".", OTHER, id="none"),
        pytest.param("", "_", OTHER, id="empty"),
        pytest.param("os", "_", OTHER, id="beginning of the property"),
        pytest.param("os", ".", [], id="never a property"),
        pytest.param("hw", "_", [], id="other properties"),
        pytest.param("os_t", "", OTHER, id="no separator"),
        pytest.param("os_t", None, OTHER, id="no separator set"),
    ],
)
def test_a_namespace_leaves_out_other_keys(namespace, separator, reasons):
    conf = a_conf(
        aggregate_image_properties_isolation_namespace=namespace,
        aggregate_image_properties_isolation_separator=separator,
    )
    others = {f"other_{number}": "x" for number in range(20)}  # keys come in any order
    host = a_host(aggregates=[{**others, "availability_zone": "z", "os_type": "linux"}])

    found = verdict(
        AggregateImagePropertiesIsolation(conf), host, a_request(image={"os_type": "windows"})
    )

    assert found == reasons


def test_a_key_that_is_no_property_is_told_once(caplog):
    isolation = AggregateImagePropertiesIsolation(a_conf())
    host = a_host(aggregates=[{"availability_zone": "z"}])

    with caplog.at_level(logging.WARNING):
        for _again in range(2):
            verdict(isolation, host, a_request(image={"os_type": "linux"}))

    assert caplog.messages == [
        "An aggregate has a metadata key 'availability_zone' that is not present in the image "
        "metadata."
    ]
