"""(service, metrics, supported instances of the host; request) -> may run it or not."""

from __future__ import annotations

import json

import pytest

from scheduler import errors, objects
from scheduler.filters.compute_filter import ComputeFilter
from scheduler.filters.image_props_filter import ImagePropertiesFilter
from scheduler.filters.metrics_filter import MetricsFilter
from tests.builders import NOW, a_conf, a_fleet, a_host, a_request, candidates, verdict
from tests.unit.filters.judging import judge, rows

DISABLED, DOWN = "compute.disabled", "compute.down"


@pytest.mark.parametrize(
    ("service", "age", "reason"),
    rows(
        ("just heard from", {}, 0, ""),
        ("as long ago as allowed", {}, 60, ""),
        ("too long ago", {}, 60.5, DOWN),
        ("clock a little ahead", {}, -60, ""),
        ("clock too far ahead", {}, -62, DOWN),
        ("never heard from", {}, float("inf"), DOWN),
        ("disabled", {"disabled": True}, 0, DISABLED),
        ("disabled comes before down", {"disabled": True}, 99, DISABLED),
        ("null flags", {"disabled": None, "forced_down": None}, 0, ""),
        ("forced down", {"forced_down": True}, 0, DOWN),
    ),
)
def test_the_service_decides(service, age, reason):
    assert judge(ComputeFilter, {"service": service, "last_seen": NOW - age}) == reason


MISSING = "metrics.missing"
CPU = {"name": "cpu.percent", "value": 0.5, "timestamp": "2026-01-01T00:00:00", "source": "x"}
FREQUENCY = {**CPU, "name": "cpu.frequency", "value": 2600}


@pytest.mark.parametrize(
    ("metrics", "setting", "reason"),
    rows(
        ("none wanted", [], [], ""),
        ("none wanted, none known", None, [], ""),
        ("there", [CPU], ["cpu.percent=1"], ""),
        ("both", [CPU, FREQUENCY], ["cpu.frequency=1", "cpu.percent=2"], ""),
        ("one of two", [CPU], ["cpu.frequency=1", "cpu.percent=2"], MISSING),
        ("no metrics", [], ["cpu.percent=1"], MISSING),
        ("no document", None, ["cpu.percent=1"], MISSING),
        ("a document that is none", "x", ["cpu.percent=1"], MISSING),
        ("a blank belongs to the name", [CPU], ["cpu.percent =1"], MISSING),
        ("a bad item does not count", [CPU], ["cpu.frequency"], ""),
    ),
)
def test_the_host_has_the_metrics(metrics, setting, reason):
    conf = a_conf()
    conf.set_override("weight_setting", setting, group="metrics")

    assert "".join(verdict(MetricsFilter(conf), a_host(metrics=metrics), a_request())) == reason


def test_an_item_that_is_no_ratio_is_told_with_its_option(caplog):
    conf = a_conf()
    conf.set_override("weight_setting", ["cpu.percent"], group="metrics")

    MetricsFilter(conf)

    assert caplog.messages == [
        "Ignoring the invalid elements of the option metrics.weight_setting: cpu.percent"
    ]


UNKNOWN, UNSUPPORTED = "image.unknown", "image.unsupported"
VERSION, BITS = "image.hypervisor_version", "image.address_bits"
XEN = [["x86_64", "xen", "hvm"]]
TWO = [["i686", "qemu", "hvm"], ["x86_64", "kvm", "hvm"]]


@pytest.mark.parametrize(
    ("supported", "image", "reason"),
    rows(
        ("no image", None, None, ""),
        ("no properties", None, {}, ""),
        ("only a version", None, {"img_hv_requested_version": ">=9.0"}, ""),
        ("host says nothing", None, {"hw_architecture": "x86_64"}, UNKNOWN),
        ("host supports nothing", [], {"hw_architecture": "x86_64"}, UNKNOWN),
        ("architecture", TWO, {"hw_architecture": "x86_64"}, ""),
        ("another name, another case", TWO, {"hw_architecture": "AMD64"}, ""),
        ("other architecture", TWO, {"hw_architecture": "ppc64"}, UNSUPPORTED),
        ("type and mode", TWO, {"img_hv_type": "qemu", "hw_vm_mode": "hvm"}, ""),
        ("one entry", TWO, {"hw_architecture": "x86_64", "img_hv_type": "qemu"}, UNSUPPORTED),
        ("any position", XEN, {"hw_vm_mode": "xen"}, ""),
        ("host's case", [["AMD64", "KVM", "HVM"]], {"hw_architecture": "x86_64"}, ""),
        ("host's old names", [["i386", "xapi", "pv"]], {"img_hv_type": "xen"}, ""),
        ("short entry", [["x86_64"]], {"hw_architecture": "x86_64"}, ""),
        ("no entries", [None, "x86_64"], {"hw_architecture": "x86_64"}, UNSUPPORTED),
    ),
)
def test_one_entry_must_hold_all_that_is_named(supported, image, reason):
    host = {"supported_instances": supported}

    assert judge(ImagePropertiesFilter, host, {"image": image}) == reason


@pytest.mark.parametrize(
    ("hypervisor_version", "requirement", "reason"),
    rows(
        ("same", 2005000, ">=2.5", ""),
        ("too old", 2005000, ">=2.6", VERSION),
        ("2.5 is 2.5.0", 2005000, "!=2.5", VERSION),
        ("2.5.1 is not 2.5", 2005001, "==2.5", VERSION),
        ("between", 2005001, ">2.5,<3.0", ""),
        ("blanks", 2005001, " >= 2.5 , < 2.5.1", VERSION),
        ("unknown", 0, ">=2.6", ""),
        ("nonsense", -1, ">=2.6", ""),
        ("one part", 6, ">=6.0", ""),
        ("two parts", 6000, "<6.1", ""),
        ("four parts", 1002003004, ">1.2.3", ""),
        ("requirement of one part", 2005000, "<3", ""),
    ),
)
def test_the_version_must_do(hypervisor_version, requirement, reason):
    host = {"hypervisor_version": hypervisor_version}
    image = {"hw_architecture": "x86_64", "img_hv_requested_version": requirement}

    assert judge(ImagePropertiesFilter, host, {"image": image}) == reason


def test_a_version_that_cannot_be_read_is_the_requests_fault():
    image = objects.ImageMetaProps(hw_architecture="x86_64")
    image.__dict__["img_hv_requested_version"] = "~>2.5"
    request = a_request(image={})
    request.image.properties = image

    with pytest.raises(errors.InvalidRequest, match="img_hv_requested_version"):
        judge(ImagePropertiesFilter, {}, request)


@pytest.mark.parametrize(
    ("cpu_info", "reason"),
    rows(
        ("enough", json.dumps({"maxphysaddr": {"bits": 46}}), ""),
        ("too few", json.dumps({"maxphysaddr": {"bits": 45}}), BITS),
        ("not a number", json.dumps({"maxphysaddr": {"bits": "few"}}), ""),
        ("not reported", json.dumps({}), ""),
        ("no document", None, ""),
    ),
)
def test_address_bits_must_do_where_known(cpu_info, reason):
    image = {"hw_architecture": "x86_64", "hw_maxphysaddr_bits": 46}

    assert judge(ImagePropertiesFilter, {"cpu_info": cpu_info}, {"image": image}) == reason


@pytest.mark.parametrize("image", [None, {}])
def test_images_without_architecture_have_the_default_one(image):
    arm = {"image_properties_default_architecture": "aarch64"}
    x86 = {"image": {"hw_architecture": "x86_64"}}

    assert judge(ImagePropertiesFilter, {}, {"image": image}, **arm) == UNSUPPORTED
    assert judge(ImagePropertiesFilter, {}, x86, **arm) == ""


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
