"""(what the host can run, image properties) -> can run it or not."""

from __future__ import annotations

import json

import pytest

from scheduler import errors, objects
from scheduler.filters.image_props_filter import ImagePropertiesFilter
from tests.builders import a_conf, a_fleet, a_host, a_request, candidates, verdict

UNKNOWN, UNSUPPORTED = ["image.unknown"], ["image.unsupported"]
VERSION, BITS = ["image.hypervisor_version"], ["image.address_bits"]
XEN = [["x86_64", "xen", "hvm"]]
TWO = [["i686", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]]


@pytest.mark.parametrize(
    ("supported", "image", "reasons"),
    [
        pytest.param(None, None, [], id="no image"),
        pytest.param(None, {}, [], id="no properties"),
        pytest.param(None, {"img_hv_requested_version": ">=9.0"}, [], id="only a version"),
        pytest.param(None, {"hw_architecture": "x86_64"}, UNKNOWN, id="host says nothing"),
        pytest.param([], {"hw_architecture": "x86_64"}, UNKNOWN, id="host supports nothing"),
        pytest.param(TWO, {"hw_architecture": "x86_64"}, [], id="architecture"),
        pytest.param(TWO, {"hw_architecture": "AMD64"}, [], id="another name, another case"),
        pytest.param(TWO, {"hw_architecture": "ppc64"}, UNSUPPORTED, id="other architecture"),
        pytest.param(TWO, {"img_hv_type": "qemu", "hw_vm_mode": "hvm"}, [], id="type and mode"),
        pytest.param(
            TWO, {"hw_architecture": "x86_64", "img_hv_type": "qemu"}, UNSUPPORTED, id="one entry"
        ),
        pytest.param(XEN, {"hw_vm_mode": "xen"}, [], id="any position"),
        pytest.param(
            [["AMD64", "KVM", "HVM"]], {"hw_architecture": "x86_64"}, [], id="host's case"
        ),
        pytest.param([["i386", "xapi", "pv"]], {"img_hv_type": "xen"}, [], id="host's old names"),
        pytest.param([["x86_64"]], {"hw_architecture": "x86_64"}, [], id="short entry"),
        pytest.param([None, "x86_64"], {"hw_architecture": "x86_64"}, UNSUPPORTED, id="no entries"),
    ],
)
def test_one_entry_must_hold_all_that_is_named(supported, image, reasons):
    host = a_host(supported_instances=supported)

    assert verdict(ImagePropertiesFilter(a_conf()), host, a_request(image=image)) == reasons


@pytest.mark.parametrize(
    ("hypervisor_version", "requirement", "reasons"),
    [
        pytest.param(2005000, ">=2.5", [], id="same"),
        pytest.param(2005000, ">=2.6", VERSION, id="too old"),
        pytest.param(2005000, "!=2.5", VERSION, id="2.5 is 2.5.0"),
        pytest.param(2005001, "==2.5", VERSION, id="2.5.1 is not 2.5"),
        pytest.param(2005001, ">2.5,<3.0", [], id="between"),
        pytest.param(2005001, " >= 2.5 , < 2.5.1", VERSION, id="blanks"),
        pytest.param(0, ">=2.6", [], id="unknown"),
        pytest.param(-1, ">=2.6", [], id="nonsense"),
        pytest.param(6, ">=6.0", [], id="one part"),
        pytest.param(6000, "<6.1", [], id="two parts"),
        pytest.param(1002003004, ">1.2.3", [], id="four parts"),
        pytest.param(2005000, "<3", [], id="requirement of one part"),
    ],
)
def test_the_version_must_do(hypervisor_version, requirement, reasons):
    host = a_host(hypervisor_version=hypervisor_version)
    image = {"hw_architecture": "x86_64", "img_hv_requested_version": requirement}

    assert verdict(ImagePropertiesFilter(a_conf()), host, a_request(image=image)) == reasons


def test_a_version_that_cannot_be_read_is_the_requests_fault():
    image = objects.ImageMetaProps(hw_architecture="x86_64")
    image.__dict__["img_hv_requested_version"] = "~>2.5"
    request = a_request(image={})
    request.image.properties = image

    with pytest.raises(errors.InvalidRequest, match="img_hv_requested_version"):
        verdict(ImagePropertiesFilter(a_conf()), a_host(), request)


@pytest.mark.parametrize(
    ("cpu_info", "reasons"),
    [
        pytest.param(json.dumps({"maxphysaddr": {"bits": 46}}), [], id="enough"),
        pytest.param(json.dumps({"maxphysaddr": {"bits": 45}}), BITS, id="too few"),
        pytest.param(json.dumps({"maxphysaddr": {"bits": "few"}}), [], id="not a number"),
        pytest.param(json.dumps({}), [], id="not reported"),
        pytest.param(None, [], id="no document"),
    ],
)
def test_address_bits_must_do_where_known(cpu_info, reasons):
    image = {"hw_architecture": "x86_64", "hw_maxphysaddr_bits": 46}

    found = verdict(
        ImagePropertiesFilter(a_conf()), a_host(cpu_info=cpu_info), a_request(image=image)
    )

    assert found == reasons


@pytest.mark.parametrize("image", [None, {}])
def test_images_without_architecture_have_the_default_one(image):
    arm = ImagePropertiesFilter(a_conf(image_properties_default_architecture="aarch64"))

    assert verdict(arm, a_host(), a_request(image=image)) == UNSUPPORTED
    assert verdict(arm, a_host(), a_request(image={"hw_architecture": "x86_64"})) == []


def test_each_host_is_refused_for_what_it_lacks():
    """The version is asked of those that can run the image at all."""
    power = [["ppc64le", "kvm", "hvm"]]
    table = a_fleet(
        {"supported_instances": power, "hypervisor_version": 3000000},
        {"hypervisor_version": 2005000},
        {"supported_instances": None},
        {"hypervisor_version": 3000000},
        {"supported_instances": power, "hypervisor_version": 2005000},
    )
    image = {"hw_architecture": "x86_64", "img_hv_requested_version": ">=2.6"}

    conditions = ImagePropertiesFilter(a_conf()).conditions(
        candidates(table), a_request(image=image)
    )

    assert {reason.code: mask.tolist() for reason, mask in conditions} == {
        "image.unknown": [True, True, False, True, True],
        "image.unsupported": [False, True, False, True, False],
        "image.hypervisor_version": [True, False, True, True, True],
    }
