"""Images and their properties, as objects and as Glance's dicts."""

import pytest

from scheduler import errors, objects
from scheduler.objects import fields
from scheduler.objects.image import LEGACY_NAMES

Props = objects.ImageMetaProps
EMPTIES = {"name": "", "checksum": "", "owner": "", "size": 0, "virtual_size": 0}


@pytest.mark.parametrize("legacy", sorted(LEGACY_NAMES))
def test_legacy_names(legacy):
    """Each takes what its newer name takes."""
    kind = Props.FIELDS[LEGACY_NAMES[legacy]].kind
    samples = {fields.KINDS[int]: "2", fields.PREDICATE: ">= 2.0", fields.FLEXIBLE_BOOL: "yes"}
    values = sorted(kind.values) if isinstance(kind, fields.EnumOf) else ["text"]
    given = samples.get(kind, [] if isinstance(kind, fields.ListOf) else values[0])
    newer = Props.from_dict({LEGACY_NAMES[legacy]: given}).to_dict()
    assert list(newer) == [LEGACY_NAMES[legacy]]
    assert Props.from_dict({legacy: given}).to_dict() == newer


@pytest.mark.parametrize("order", [1, -1])
def test_the_newer_name_wins(order):
    given = [("architecture", "i386"), ("hw_architecture", "aarch64")]
    assert Props.from_dict(dict(given[::order])).hw_architecture == "aarch64"


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("hw_architecture", "i586", "i686"),
        ("hw_architecture", "X86_32P", "i686"),
        ("hw_architecture", "AMD64", "x86_64"),
        ("img_hv_type", "XAPI", "xen"),
        ("img_hv_type", "QEMU", "qemu"),
        ("hw_vm_mode", "HV", "hvm"),
        ("os_type", "Windows", "windows"),
        ("hw_scsi_model", "lsiLogicSAS", "lsisas1068"),
        # Fields that scheduling does not use keep what a newer release may have added.
        ("hw_scsi_model", "brand-new", "brand-new"),
        ("hw_boot_menu", " On ", True),
        ("hw_cpu_cores", "4", 4),
        ("hw_mem_page_size", 2048, "2048"),
    ],
)
def test_values_are_brought_to_one_form(name, given, kept):
    assert Props.from_dict({name: given}).get(name) == kept
    assert getattr(Props(**{name: given}), name) == kept


BAD = {
    "img_hv_type": {"hypervisor_type": "foo"},
    "hw_architecture": {"architecture": "pdp11"},
    "hw_vm_mode": {"hw_vm_mode": "vm"},
    "img_hv_requested_version": {"hypervisor_version_requires": "abc"},
    "hw_cpu_policy": {"hw_cpu_policy": "Dedicated"},
    "hw_cpu_cores": {"hw_cpu_cores": "four"},
    "hw_cpu_threads": {"hw_cpu_threads": None},
    "hw_numa_mem.0": {"hw_numa_mem.0": "x"},
    "hw_numa_cpus.1": {"hw_numa_cpus.0": "0", "hw_numa_cpus.1": "5-1"},
}


@pytest.mark.parametrize("field", BAD)
def test_bad_properties_are_named(field):
    for read, value, path in (
        (Props.from_dict, BAD[field], f"ImageMetaProps.{field}"),
        (objects.ImageMeta.from_dict, {"properties": BAD[field]}, f"ImageMeta.properties.{field}"),
    ):
        with pytest.raises(errors.InvalidRequest) as caught:
            read(value)
        assert caught.value.kwargs["field"] == path


@pytest.mark.parametrize(
    ("properties", "kept"),
    [
        ({}, {}),
        ({"colour": "blue"}, {}),
        ({"vmware_adaptertype": "ide"}, {"hw_disk_bus": "ide"}),
        ({"vmware_adaptertype": ""}, {}),
        ({"vmware_adaptertype": "lsiLogic"}, {"hw_disk_bus": "scsi", "hw_scsi_model": "lsilogic"}),
        ({"hw_numa_mem.0": "512", "hw_numa_mem.1": 256}, {"hw_numa_mem": [512, 256]}),
        ({"hw_numa_mem.0": "512", "hw_numa_mem.2": "256"}, {"hw_numa_mem": [512]}),
        ({"hw_numa_mem.1": "512"}, {}),
        ({"hw_numa_mem": [1], "hw_numa_cpus": [[1]], "traits_required": ["T"]}, {}),
        ({"hw_numa_cpus.0": "0-3,^2", "hw_numa_cpus.1": 2}, {"hw_numa_cpus": [[0, 1, 3], [2]]}),
        ({"trait:A": "required", "trait:B": "forbidden"}, {"traits_required": ["A"]}),
    ],
)
def test_spellings_of_lists(properties, kept):
    before = dict(properties)
    assert Props.from_dict(properties).to_dict() == kept
    assert properties == before


def test_numa_lists_end_somewhere():
    many = {f"hw_numa_mem.{n}": 1 for n in range(200)}
    assert len(Props.from_dict(many).hw_numa_mem) == 128


@pytest.mark.parametrize(
    ("image", "kept"),
    [
        (None, {"properties": {}}),
        ({}, {"properties": {}}),
        ({"location": "x", "deleted": False, "is_public": True}, {"properties": {}}),
        (dict.fromkeys(EMPTIES), {**EMPTIES, "properties": {}}),
        (
            {"id": "i", "min_ram": "64", "properties": {"architecture": "amd64"}},
            {"id": "i", "min_ram": 64, "properties": {"hw_architecture": "x86_64"}},
        ),
    ],
)
def test_images_from_dicts(image, kept):
    meta = objects.ImageMeta.from_dict(image)
    assert objects.to_plain(meta) == kept


@pytest.mark.parametrize(
    ("read", "value", "field"),
    [
        (objects.ImageMeta, {"min_ram": None}, "ImageMeta.min_ram"),
        (objects.ImageMeta, {"properties": [1]}, "ImageMeta.properties"),
        (Props, [], "ImageMetaProps"),
    ],
)
def test_bad_images_are_named(read, value, field):
    with pytest.raises(errors.InvalidRequest) as caught:
        read.from_dict(value)
    assert caught.value.kwargs["field"] == field
