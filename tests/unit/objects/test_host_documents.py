"""The texts that compute nodes store, and the plain forms of NUMA and PCI requests."""

import json

import pytest

from scheduler import errors, objects
from tests.unit.objects.wire_samples import envelope

Guest = objects.InstanceNUMATopology


def test_a_host_without_cells():
    assert objects.NUMATopology.from_text(None) is None
    for text in ("{}", '{"cells": []}', '{"cells": null}'):
        assert not objects.NUMATopology.from_text(text)


BAD_PERCENTAGE = '[{"name": "cpu.percent", "value": {}}]'
BAD_TEXTS = {
    objects.NUMATopology: [
        *("", "x", "[]", "null", '{"cells": 5}', '{"cells": [5]}', '{"cells": [{"cpus": "0"}]}'),
        *('{"cells": [{"id": 0, "cpus": "x"}]}', '{"cells": [{"id": 0, "mem": [1]}]}'),
    ],
    objects.PciDevicePoolList: ["[5]", "7", '[{"count": "x"}]', '{"tags": 5, "count": 1}'],
    objects.MonitorMetricList: [
        *("{", "{}", "[1]", '[{"name": "cpu.frequency", "value": "x"}]', BAD_PERCENTAGE)
    ],
}


@pytest.mark.parametrize(
    ("cls", "text"), [(cls, text) for cls, texts in BAD_TEXTS.items() for text in texts]
)
def test_bad_texts(cls, text):
    with pytest.raises(errors.InvalidRequest):
        cls.from_text(text)


MEMORY = {"total": 4096, "limit": 6144.0}
PLAIN_CELL = {"id": 0, "cpuset": [0, 1], "memory": 64, "pagesize": None, "cpu_policy": "dedicated"}
SMALL_CELL = {"id": 0, "cpuset": [1], "memory": 8}
GUEST_ENVELOPE = envelope(
    "InstanceNUMATopology", cells=[envelope("InstanceNUMACell", **SMALL_CELL)]
)
OLD_GUEST = {"cells": [{"id": 1, "cpus": "0,1", "mem": {"total": 64}, "pagesize": 4}]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"cells": [PLAIN_CELL]}, (0, set(), {0, 1}, 64, None)),
        ({"cells": [{**PLAIN_CELL, "cpu_policy": None}]}, (0, {0, 1}, set(), 64, None)),
        ({"cells": [{**PLAIN_CELL, "pcpuset": [2]}]}, (0, {0, 1}, {2}, 64, None)),
        (OLD_GUEST, (1, {0, 1}, set(), 64, 4)),
        (GUEST_ENVELOPE, (0, {1}, set(), 8, None)),
        ({"cells": [objects.InstanceNUMACell(**SMALL_CELL)]}, (0, {1}, set(), 8, None)),
    ],
)
def test_guest_topologies(value, expected):
    topology = Guest.from_dict(value)
    as_text = json.dumps(value, default=objects.InstanceNUMACell.obj_to_primitive)
    assert Guest.from_dict(as_text).obj_to_primitive() == topology.obj_to_primitive()
    assert objects.RequestSpec(numa_topology=value).numa_topology.cells[0].id == expected[0]
    (cell,) = topology.cells
    assert (cell.id, cell.cpuset, cell.pcpuset, cell.memory, cell.pagesize) == expected


@pytest.mark.parametrize(
    ("value", "field"),
    [
        *[({}, ""), ({"cells": []}, ""), ("[]", ""), ("{", ""), (5, ""), (envelope("Flavor"), "")],
        ({"cells": [5]}, ".cells[0]"),
        ({"cells": [{"cpuset": [0], "memory": 1}]}, ".cells[0].id"),
        ({"cells": [PLAIN_CELL, {"id": 1}]}, ".cells[1].cpuset"),
        ({"cells": [{"id": 1, "cpus": "x"}]}, ".cells[0]"),
    ],
)
def test_bad_guest_topologies_are_named(value, field):
    with pytest.raises(errors.InvalidRequest) as caught:
        Guest.from_dict(value)
    assert caught.value.kwargs["field"] == f"InstanceNUMATopology{field}"


def test_pinning_has_numbers_in_memory_and_texts_on_the_wire():
    cell = objects.InstanceNUMACell(id=0)
    assert cell.cpu_pinning is None
    cell.cpu_pinning = {0: 4, 1: 6}
    assert (cell.cpu_pinning_raw, cell.cpu_pinning) == ({"0": 4, "1": 6}, {0: 4, 1: 6})
    with pytest.raises(errors.InvalidRequest, match="InstanceNUMACell.cpu_pinning_raw: .*'x'"):
        _ = objects.InstanceNUMACell(cpu_pinning_raw={"x": 4}).cpu_pinning


@pytest.mark.parametrize(
    ("value", "ratios"),
    [
        ({"cells": [{"cpus": "0,1", "cpu_limit": 32.0, "mem": MEMORY}]}, (16.0, 1.5)),
        ({"cells": []}, None),
        ({"cells": [{"cpus": "", "cpu_limit": 1, "mem": {}}]}, None),
        (5, None),
    ],
)
def test_limits_of_old_hosts(value, ratios):
    if ratios is None:
        with pytest.raises(errors.InvalidRequest, match="SchedulerLimits.numa_topology"):
            objects.SchedulerLimits.from_dict({"numa_topology": value})
    else:
        limits = objects.SchedulerLimits.from_dict({"numa_topology": value}).numa_topology
        assert (limits.cpu_allocation_ratio, limits.ram_allocation_ratio) == ratios


def test_pci_pools_of_rows():
    assert objects.PciDevicePoolList.from_text(None) is None, "never reported"
    pool = objects.PciDevicePool.from_dict({"vendor_id": 1, "product_id": 2, "count": "3", "t": 1})
    assert (pool.numa_node, pool.count, pool.tags) == (None, 3, {"t": "1"})


def test_pci_requests_of_database_rows():
    row = [{"count": 1, "spec": [{"vendor_id": "8086", "x": None}], "alias_name": "nic"}]
    requests = objects.InstancePCIRequests.from_dict(row)
    assert not requests.is_set("instance_uuid")
    assert objects.to_plain(requests.requests[0]) == row[0]
    again = objects.InstancePCIRequests.from_dict({"instance_uuid": "u", "requests": row})
    assert (again.instance_uuid, len(again.requests)) == ("u", 1)
    assert objects.InstancePCIRequests.from_dict({"requests": None}).requests == []


TAKEN = {"timestamp": "2026-11-21T07:41:37", "source": "driver"}
METRICS = [
    {"name": "cpu.percent", "value": 0.29, **TAKEN},
    {"name": "cpu.frequency", "value": 1600, **TAKEN},
    {"name": "numa.membw.max", "numa_membw_values": {"0": 10}, **TAKEN},
]


def test_metrics():
    metrics = objects.MonitorMetricList.from_text(json.dumps(METRICS))
    assert [m.value for m in metrics] == [28, 1600, None]
    assert metrics[2].numa_membw_values == {"0": 10}
    for nothing in (None, "", "[]"):
        assert len(objects.MonitorMetricList.from_text(nothing)) == 0


def test_supported_guests_of_a_host():
    spec = objects.HVSpec(arch="AMD64", hv_type="xapi", vm_mode="hvm")
    assert [spec.arch, spec.hv_type, spec.vm_mode] == ["x86_64", "xen", "hvm"]
    newer = objects.HVSpec(arch="new", hv_type="newer", vm_mode="newest")
    assert [newer.arch, newer.hv_type, newer.vm_mode] == ["new", "newer", "newest"]
