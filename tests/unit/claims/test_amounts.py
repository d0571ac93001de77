"""Columns of a claim as version 0.1 wrote them; races restart with today's."""

import json
from types import SimpleNamespace
from typing import Any

from scheduler import pci
from scheduler.claims import amounts
from scheduler.hosts.host_state import Consumption
from scheduler.numa import Wish

HOW: Any = "how cells and devices are given out"
GPU = pci.Request(
    count=2,
    specs=((("product_id", "1db4"), ("vendor_id", "10de")), (("vendor_id", "8086"),)),
    policy="required",
    alias_name="gpu",
)


def test_devices_in_the_form_of_version_0_1():
    columns = amounts.to_columns(Consumption(512, 0, 1, Wish(None, (GPU,), None, HOW)))
    (device,) = json.loads(columns["pci_requests"])
    row = SimpleNamespace(
        **{**columns, "pci_requests": json.dumps([{**device, "request_id": "r"}])}
    )
    assert amounts.of_row(row, HOW).wish.requests == (GPU,)
