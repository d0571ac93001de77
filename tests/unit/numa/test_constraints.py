"""Cells that flavor and image ask for, and refusals that name a key; worked examples show more."""

import inspect
import re
import sys

import pytest

from scheduler import errors, objects
from scheduler.errors import REFUSALS
from scheduler.numa import CURRENT, NEWTON, constraints
from scheduler.numa.specs import current_size_kb, newton_size_kb

BOTH = pytest.mark.parametrize("semantics", [CURRENT, NEWTON], ids=["current", "newton"])

DEDICATED, MIXED = {"hw:cpu_policy": "dedicated"}, {"hw:cpu_policy": "mixed"}
REALTIME = {**DEDICATED, "hw:cpu_realtime": "1"}
PCPUS = {"resources:PCPU": "4"}
THREADS = {"trait:HW_CPU_HYPERTHREADING": "required"}
MASK, REALTIME_MASK = "hw:cpu_dedicated_mask", "hw:cpu_realtime_mask"
EMULATOR = "hw:emulator_threads_policy"


def topology(specs, properties=None, semantics=CURRENT, vcpus=4):
    flavor = objects.Flavor(vcpus=vcpus, memory_mb=1024, extra_specs=specs)
    image = objects.ImageMeta(properties=objects.ImageMetaProps.from_dict(properties or {}))
    return constraints(flavor, image, semantics)


@pytest.mark.parametrize(
    ("specs", "properties", "error", "field"),
    [
        ({"hw:numa_nodes": "02"}, {}, "InvalidNUMANodesNumber", "hw:numa_nodes"),
        ({"hw:numa_nodes": "+2"}, {}, "InvalidNUMANodesNumber", "hw:numa_nodes"),
        ({"hw:numa_nodes": "9" * 5000}, {}, "InvalidNUMANodesNumber", "hw:numa_nodes"),
        ({}, {"hw_numa_nodes": 0}, "InvalidNUMANodesNumber", "hw_numa_nodes"),
        ({"hw:numa_nodes": "1"}, {"hw_numa_nodes": 1}, "ImageNUMATopologyForbidden", "hw_numa"),
        ({"hw:numa_nodes": "1", "hw:numa_cpus.0": "3-"}, {}, "InvalidRequest", "hw:numa_cpus.0"),
        (
            {"hw:numa_nodes": "1", "hw:numa_cpus.0": "0-3", "hw:numa_mem.0": "1g"},
            *({}, "InvalidRequest", "hw:numa_mem.0"),
        ),
        (
            {"hw:mem_page_size": "any"},
            *({"hw_mem_page_size": "2M"}, "MemoryPageSizeInvalid", "hw_mem_page_size"),
        ),
        ({"hw:mem_page_size": f"{'9' * 400}MB"}, {}, "MemoryPageSizeInvalid", "hw:mem_page_size"),
        ({}, {"hw_mem_page_size": "any"}, "MemoryPageSizeForbidden", "hw_mem_page_size"),
        (
            {**DEDICATED, "hw:cpu_thread_policy": "x"},
            *({}, "InvalidCPUThreadAllocationPolicy", "hw:cpu_thread_policy"),
        ),
    ],
)
@BOTH
def test_refused(specs, properties, error, field, semantics):
    with pytest.raises(errors.InvalidRequest) as caught:
        topology(specs, properties, semantics)
    assert type(caught.value).__name__ == error
    assert field in caught.value.kwargs["field"]


@pytest.mark.parametrize(
    ("specs", "vcpus", "field"),
    [
        ({}, 2**31 - 1, "flavor.vcpus"),
        (DEDICATED, 65536, "flavor.vcpus"),
        ({"hw:numa_nodes": "999999999"}, 0, "hw:numa_nodes"),
    ],
)
def test_nobody_fills_the_memory(specs, vcpus, field):
    with pytest.raises(errors.InvalidRequest, match=field):
        topology(specs, vcpus=vcpus)


@pytest.mark.parametrize(
    ("specs", "properties", "error"),
    [
        ({**MIXED, MASK: "3"}, {"hw_cpu_policy": "dedicated"}, "ImageCPUPinningForbidden"),
        ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "mixed"}, "ImageCPUPinningForbidden"),
        ({**MIXED, MASK: "3-4"}, {}, "InvalidMixedInstanceDedicatedMask"),
        ({**MIXED, MASK: "x"}, {}, "InvalidMixedInstanceDedicatedMask"),
        ({**REALTIME, REALTIME_MASK: "0-3"}, {}, "RealtimeMaskNotFoundOrInvalid"),
        ({**REALTIME, REALTIME_MASK: "9"}, {}, "RealtimeMaskNotFoundOrInvalid"),
        ({**PCPUS, "resources:VCPU": "4"}, {}, "InvalidRequest"),
        ({"resources:VCPU": "4", "hw:cpu_policy": "shared"}, {}, "InvalidRequest"),
        ({"resources1:PCPU": "three"}, {}, "InvalidRequest"),
        ({**PCPUS, **THREADS, "hw:cpu_thread_policy": "prefer"}, {}, "InvalidRequest"),
        ({**PCPUS, EMULATOR: "isolate"}, {}, "InvalidRequest"),
    ],
)
def test_refused_today(specs, properties, error):
    with pytest.raises(errors.InvalidRequest) as caught:
        topology(specs, properties)
    assert type(caught.value).__name__ == error


@pytest.mark.parametrize(
    ("specs", "policy", "threads", "emulator", "dedicated"),
    [
        ({"resources1:PCPU": "2", "resources2:PCPU": "2"}, "dedicated", None, None, 4),
        ({**PCPUS, **THREADS}, "dedicated", "require", None, 4),
        ({"resources:PCPU": "5", EMULATOR: "isolate"}, "dedicated", None, "isolate", 4),
        ({**MIXED, MASK: "^0-1"}, "mixed", None, None, 2),
        ({**REALTIME, EMULATOR: "share"}, "dedicated", None, "share", 4),
        ({"hw:pmem": "6GB"}, None, None, None, 0),
        ({"hw:numa_nodes": "1", EMULATOR: "share"}, None, None, None, 0),
    ],
)
def test_asked_today(specs, policy, threads, emulator, dedicated):
    found = topology(specs)
    assert found is not None
    (cell,) = found.cells
    assert (cell.cpu_policy, cell.cpu_thread_policy) == (policy, threads)
    assert (found.emulator_threads_policy, len(cell.pcpuset)) == (emulator, dedicated)
    assert len(cell.pcpuset | cell.cpuset) == 4


@pytest.mark.parametrize("read", [current_size_kb, newton_size_kb])
@pytest.mark.parametrize(
    ("text", "size_kb"),
    [
        ("2048", 2048),
        ("2MB", 2048),
        ("2048KB", 2048),
        ("1GB", 1048576),
        ("1.5GB", 1572864),
        ("2Mb", 256),
        ("4KB", 4),
        ("1GiB", 1048576),
        ("small", -1),
        ("large", -2),
        ("any", -3),
    ],
)
def test_page_sizes(read, text, size_kb):
    assert read(text) == size_kb


@pytest.mark.parametrize("read", [current_size_kb, newton_size_kb])
@pytest.mark.parametrize(
    "text", ["2M", "1G", "1kB", "2 MB", "Any", "huge", "-1", "0MB", "512B", ""]
)
def test_no_page_sizes(read, text):
    with pytest.raises(ValueError, match=r"page size|format"):
        read(text)


def test_every_refusal_is_known_by_name():
    module = sys.modules["scheduler.numa.constraints"]
    used = set(re.findall(r'"([A-Z]\w+[a-z]\w+)"', inspect.getsource(module)))
    assert used == {name for name in REFUSALS if "pci" not in name.lower()}
