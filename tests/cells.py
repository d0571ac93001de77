"""Random NUMA cells and PCI devices, of hosts and as servers ask for them, for hypothesis."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from scheduler import objects


def _topology(pages_kb: tuple[int, ...]) -> str:
    cells = [
        objects.NUMACell(
            id=number,
            cpuset=set(range(4 * number, 4 * number + 4)),
            pcpuset=set(range(4 * number, 4 * number + 4)),
            memory=4096,
            siblings=[{cpu, cpu + 1} for cpu in range(4 * number, 4 * number + 4, 2)],
            mempages=[
                objects.NUMAPagesTopology(size_kb=size_kb, total=4194304 // size_kb)
                for size_kb in pages_kb
            ],
        )
        for number in range(2)
    ]
    return objects.NUMATopology(cells=cells).to_text()


#: Two cells of four CPUs in two cores each; three devices on the first, one anywhere.
TOPOLOGY, WITHOUT_PAGES = _topology((4, 2048)), _topology(())
POOLS = json.dumps(
    [
        {"vendor_id": "8086", "product_id": "10ed", "numa_node": 0, "count": 3},
        {"vendor_id": "8086", "product_id": "10ee", "count": 1, "physical_network": "p1"},
    ]
)

#: Contents of the two columns, unreadable ones among them.
topologies = st.sampled_from([TOPOLOGY, WITHOUT_PAGES, '{"cells": []}', "not json", None])
pools = st.sampled_from([POOLS, "[]", '[{"vendor_id": "1"}]', None])


@st.composite
def guests(draw: st.DrawFn) -> objects.InstanceNUMATopology:
    """One or two cells, pinned or not, with or without a wish for pages."""
    count, cpus = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    policy = draw(st.sampled_from([None, "dedicated"]))
    thread_policy = draw(st.sampled_from([None, "isolate"])) if policy else None
    pagesize = draw(st.sampled_from([None, -1, -3, 2048]))
    cells = []
    for number in range(count):
        mine = set(range(number * cpus, (number + 1) * cpus))
        cells.append(
            objects.InstanceNUMACell(
                id=number,
                cpuset=set() if policy else mine,
                pcpuset=mine if policy else set(),
                memory=512,
                pagesize=pagesize,
                cpu_policy=policy,
                cpu_thread_policy=thread_policy,
            )
        )
    return objects.InstanceNUMATopology(cells=cells)


@st.composite
def devices(draw: st.DrawFn) -> objects.InstancePCIRequests:
    """Up to two requests for up to two devices each."""
    requests = [
        objects.InstancePCIRequest(
            count=draw(st.integers(0, 2)),
            spec=[draw(st.sampled_from([{"vendor_id": "8086"}, {"physical_network": "p1"}, {}]))],
            numa_policy=draw(st.sampled_from([None, "required", "preferred"])),
        )
        for _number in range(draw(st.integers(0, 2)))
    ]
    return objects.InstancePCIRequests(requests=requests)
