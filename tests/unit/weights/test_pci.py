"""(pools of the hosts) -> raw values; recordings show the weighers that read numbers."""

import pytest

from scheduler.weights.pci import PCIWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates


def pools(*counts):
    devices = {"vendor_id": "8086", "numa_node": 0}
    return [{**devices, "product_id": str(n), "count": count} for n, count in enumerate(counts)]


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
