"""The JSON texts in a compute node's columns (reference page database, section 5)."""

from __future__ import annotations

import datetime
import json
from typing import Any

from conductor_stub.compute.profiles import HostKind

METRIC_SOURCE = "stub"


def cpu_info(kind: HostKind) -> str:
    """The profile's own, or a plain processor with the kind's number of cores."""
    if kind.cpu_info is not None:
        return json.dumps(kind.cpu_info)
    cells = len(kind.numa_cells) or 1
    topology = {"cells": cells, "sockets": 1, "cores": kind.vcpus // cells, "threads": 1}
    return json.dumps(
        {
            "vendor": "Intel",
            "model": "Broadwell",
            "arch": "x86_64",
            "features": [],
            "topology": topology,
        }
    )


def supported_instances(kind: HostKind) -> str:
    """``[architecture, hypervisor type, vm mode]`` triples."""
    return json.dumps([list(triple) for triple in kind.supported_instances])


def metrics(kind: HostKind, now: datetime.datetime) -> str:
    """The kind's metrics as measured *now*; values are stored as the profile has them."""
    measured: list[dict[str, Any]] = [
        {"name": name, "value": value, "timestamp": now.isoformat(), "source": METRIC_SOURCE}
        for name, value in kind.metrics.items()
    ]
    return json.dumps(measured)
