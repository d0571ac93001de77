"""(system metadata of an instance) -> properties of its image."""

from __future__ import annotations

import pytest

from scheduler import objects
from scheduler.hosts import image_properties


@pytest.mark.parametrize(
    ("system_metadata", "properties"),
    [
        (None, set()),
        ({}, set()),
        ({"boot_roles": "x", "hw_vm_mode": "hvm"}, set()),
        ({"image_base_image_ref": "i1"}, set()),
        ({"image_hw_vm_mode": "hvm"}, {("hw_vm_mode", "hvm")}),
        ({"image_architecture": "AMD64"}, {("hw_architecture", "x86_64")}),
        ({"image_hw_cpu_cores": "4"}, {("hw_cpu_cores", "4")}),
        ({"image_hw_boot_menu": "yes"}, {("hw_boot_menu", "True")}),
        ({"image_hw_vm_mode": "hvm", "image_hw_cpu_cores": "x"}, set()),
    ],
)
def test_recorded(system_metadata, properties):
    assert image_properties.recorded(system_metadata) == properties


def test_those_of_a_request():
    image = objects.ImageMeta(properties=objects.ImageMetaProps(hw_cpu_cores=4, os_type="linux"))

    assert image_properties.properties_of(None) == set()
    assert image_properties.properties_of(image) == {("hw_cpu_cores", "4"), ("os_type", "linux")}
