"""(columns of the hosts, multiplier) -> weights and order, for the weighers that read columns."""

from __future__ import annotations

import pytest

from scheduler.weights.compute import BuildFailureWeigher
from scheduler.weights.cpu import CPUWeigher
from scheduler.weights.disk import DiskWeigher
from scheduler.weights.hypervisor_version import HypervisorVersionWeigher
from scheduler.weights.io_ops import IoOpsWeigher
from scheduler.weights.num_instances import NumInstancesWeigher
from scheduler.weights.pci import PCIWeigher
from scheduler.weights.ram import RAMWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions


def pools(*counts):
    devices = {"vendor_id": "8086", "numa_node": 0}
    return [{**devices, "product_id": str(n), "count": count} for n, count in enumerate(counts)]


CPU = ("vcpus_total", "cpu_allocation_ratio", "vcpus_used")

# weigher, its columns, their values per host, multiplier (None: default), weights, order
ROWS = [
    (RAMWeigher, "free_ram_mb", [1024, 2048, 8192], None, [0.125, 0.25, 1.0], "321"),
    (RAMWeigher, "free_ram_mb", [-512, -1024], None, [0.0, 0.0], "12"),
    (RAMWeigher, "free_ram_mb", [5, 5, 9, 9], None, [5 / 9, 5 / 9, 1.0, 1.0], "3412"),
    (RAMWeigher, "free_ram_mb", [1024, 2048, 8192], -1.0, [-0.125, -0.25, -1.0], "123"),
    (DiskWeigher, "free_disk_mb", [102400, 51200, -10240], None, [1.0, 0.5, 0.0], "123"),
    (CPUWeigher, CPU, [(16, 16.0, 20), (8, 4.0, 4), (4, 1.0, 8)], None, [1, 0.118644, 0], "123"),
    (IoOpsWeigher, "num_io_ops", [0, 1, 4], None, [0.0, -0.25, -1.0], "123"),
    (NumInstancesWeigher, "num_instances", [3, 1, 1], None, [0.0, 0.0, 0.0], "123"),
    (NumInstancesWeigher, "num_instances", [3, 1, 1], -1.0, [-1.0, 0.0, 0.0], "231"),
    (HypervisorVersionWeigher, "hypervisor_version", [2005000, 6002000, 0], None,
     [0.334055, 1.0, 0.0], "213"),
    (BuildFailureWeigher, "failed_builds", [0, 1, 4], None, [0.0, -250000.0, -1000000.0], "123"),
    (PCIWeigher, "pci_stats", [pools(200), None, pools(4, 4)], None, [0.0, 1.0, 0.919192], "231"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "columns", "values", "multiplier", "weights", "order"), ROWS)
def test_hosts_are_weighed(cls, columns, values, multiplier, weights, order):
    if isinstance(columns, str):
        columns, values = (columns,), [(value,) for value in values]
    fleet = a_fleet(*[dict(zip(columns, value, strict=True)) for value in values])
    options = {} if multiplier is None else {cls.multiplier_option: multiplier}

    found, names = contributions(cls(a_conf(**options)), candidates(fleet), a_request())

    assert found == pytest.approx(weights, abs=1e-6)
    assert names == [f"h{number}" for number in order]


@pytest.mark.parametrize(
    ("fleet", "raw"),
    [
        pytest.param([None, pools()], [100, 100], id="none"),
        pytest.param([pools(4, 4), pools(99), pools(200)], [92, 1, 1], id="some and many"),
        pytest.param(["x", '[{"count": 1}]'], [100, 100], id="not to be read"),
    ],
)
def test_free_devices_are_scarce(fleet, raw):
    hosts = candidates(a_fleet(*[{"pci_stats": each} for each in fleet]))

    assert PCIWeigher(a_conf()).raw(hosts, a_request()).tolist() == raw
