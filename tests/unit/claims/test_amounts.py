"""What is claimed comes back from the columns as it went in."""

import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler import numa, pci
from scheduler.claims import amounts
from scheduler.hosts.host_state import Consumption
from scheduler.numa import Wish
from tests.unit.numa.builders import guest, want

HOW: Any = "how cells and devices are given out"
GUEST = dataclasses.replace(guest(want(range(2), "dedicated")), emulator_threads_policy="isolate")
LIMITS = numa.Limits(4.0, 1.5)
GPU = pci.Request(
    count=2,
    specs=((("product_id", "1db4"), ("vendor_id", "10de")), (("vendor_id", "8086"),)),
    policy="required",
    alias_name="gpu",
)


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param(None, id="neither cells nor devices"),
        pytest.param(Wish(GUEST, (), None, HOW), id="cells"),
        pytest.param(Wish(GUEST, (), LIMITS, HOW), id="cells and limits"),
        pytest.param(Wish(None, (), LIMITS, HOW), id="limits"),
        pytest.param(Wish(None, (GPU, pci.Request(1, ((),))), None, HOW), id="devices"),
        pytest.param(Wish(GUEST, (GPU,), LIMITS, HOW), id="all"),
    ],
)
def test_there_and_back(wish):
    amount = Consumption(ram_mb=512, disk_mb=3 * 1024, vcpus=2, wish=wish)

    columns = amounts.to_columns(amount)

    assert (columns["vcpus"], columns["memory_mb"], columns["disk_gb"]) == (2, 512, 3)
    assert (columns["numa_topology"] is None) == (wish is None or not (wish.guest or wish.limits))
    assert (columns["pci_requests"] is None) == (wish is None or not wish.requests)
    assert amounts.of_row(SimpleNamespace(**columns), HOW) == amount


def test_devices_in_the_form_of_version_0_1():
    columns = amounts.to_columns(Consumption(512, 0, 1, Wish(None, (GPU,), None, HOW)))
    (device,) = json.loads(columns["pci_requests"])
    row = SimpleNamespace(
        **{**columns, "pci_requests": json.dumps([{**device, "request_id": "r"}])}
    )
    assert amounts.of_row(row, HOW).wish.requests == (GPU,)
