"""Random small fleets and requests with values that go wrong, cells, devices; for hypothesis."""

import copy
import json
from typing import Any

from hypothesis import strategies as st

from scheduler import objects
from scheduler.hosts import columns
from scheduler.hosts.table import HostTable
from tests.builders import NOW, OWN_UUID, a_fleet, a_request


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
    """One or two cells, pinned, in part or not, with or without a wish for pages."""
    count, cpus = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    policy = draw(st.sampled_from([None, "dedicated", "mixed"]))
    thread_policy = draw(st.sampled_from([None, "isolate"])) if policy else None
    pagesize = draw(st.sampled_from([None, -1, -3, 2048]))
    cells = []
    for number in range(count):
        mine = list(range(number * cpus, (number + 1) * cpus))
        shared = {None: cpus, "dedicated": 0, "mixed": draw(st.integers(0, cpus))}[policy]
        cells.append(
            objects.InstanceNUMACell(
                id=number,
                cpuset=set(mine[:shared]),
                pcpuset=set(mine[shared:]),
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


_UUIDS = [f"aaaaaaaa-0000-4000-a000-00000000000{n}" for n in range(4)]
_NAMES = ["h1", "h2", "h3", "H1"]
_mb = st.sampled_from([-2048, -1, 0, 1, 512, 4096, 2**40])
_few = st.integers(-1, 60)
_ratio = st.sampled_from([0.0, 0.5, 1.0, 1.5, 16.0])

_host = st.fixed_dictionaries(
    {},
    optional={
        "total_usable_ram_mb": _mb,
        "free_ram_mb": _mb,
        "total_usable_disk_gb": _few,
        "free_disk_mb": _mb,
        "vcpus_total": _few,
        "vcpus_used": _few,
        "num_instances": _few,
        "num_io_ops": _few,
        "cpu_allocation_ratio": _ratio,
        "ram_allocation_ratio": _ratio,
        "disk_allocation_ratio": _ratio,
        "hypervisor_version": st.sampled_from([-1, 0, 6, 2005000]),
        "hypervisor_type": st.sampled_from([None, "QEMU"]),
        "numa_topology": topologies,
        "pci_stats": pools,
        "supported_instances": st.sampled_from(
            [None, [], [["x86_64", "kvm", "hvm"]], [["aarch64", "kvm", "hvm"]]]
        ),
        "cpu_info": st.sampled_from([None, "", "x", json.dumps({"vendor": "Intel"})]),
        "stats": st.sampled_from([None, {"tier": "gold"}, {"tier": "iron"}]),
        "aggregates": st.lists(
            st.dictionaries(
                st.sampled_from(["availability_zone", "ram_weight_multiplier"]),
                st.sampled_from(["", "z1", "z1, z2", "-2", "3"]),
            ),
            max_size=2,
        ),
        "instances": st.lists(st.sampled_from([*_UUIDS, OWN_UUID]), max_size=3),
        "service": st.fixed_dictionaries(
            {}, optional={"disabled": st.booleans(), "forced_down": st.booleans()}
        ),
        "last_seen": st.sampled_from([NOW, NOW - 60, NOW - 61, NOW + 61, float("-inf")]),
    },
)

_request = st.fixed_dictionaries(
    {
        "flavor": st.fixed_dictionaries(
            {
                "memory_mb": st.sampled_from([0, 512, 4096, 5000]),
                "vcpus": st.integers(0, 5),
                "root_gb": st.sampled_from([0, 1, 101]),
                "extra_specs": st.sampled_from(
                    [
                        {},
                        {"tier": "gold"},
                        {"capabilities:cpu_info:vendor": "Intel", "hw:x": "1"},
                        {"capabilities:hypervisor_type": "s== QEMU", "free_ram_mb": ">= 0"},
                        {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"},
                    ]
                ),
            }
        ),
        "image": st.sampled_from(
            [
                None,
                {},
                {"hw_architecture": "x86_64", "img_hv_requested_version": ">=2.5"},
                {"img_hv_type": "kvm", "hw_maxphysaddr_bits": 46},
            ]
        ),
        "hints": st.sampled_from(
            [None, {}, {"same_host": _UUIDS[:1]}, {"different_host": _UUIDS[:2]}]
        ),
        "group": st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {
                    "policy": st.sampled_from(
                        ["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", "odd"]
                    ),
                    "members": st.lists(st.sampled_from(_UUIDS), max_size=3),
                    "hosts": st.lists(st.sampled_from(_NAMES), max_size=2),
                    "rules": st.sampled_from([{}, {"max_server_per_host": "2"}]),
                }
            ),
        ),
        "tried": st.sampled_from([None, [], [("h1", "n1"), ("h2", None)]]),
        "availability_zone": st.sampled_from([None, "", "nova", "z1", "z2"]),
        "numa_topology": st.one_of(st.none(), guests()),
        "pci_requests": st.one_of(st.none(), devices()),
    }
)


def fleets(max_size: int = 5) -> st.SearchStrategy[HostTable]:
    """Tables of one to *max_size* hosts."""
    return st.lists(_host, min_size=1, max_size=max_size).map(lambda hosts: a_fleet(*hosts))


def requests() -> st.SearchStrategy[objects.RequestSpec]:
    return _request.map(lambda fields: a_request(**fields))


def minimal_fleet() -> HostTable:
    """One host of which nothing is known but that it exists."""
    table = HostTable()
    table.put(("h1", None), {})
    table.set_service("h1", {}, float("-inf"))
    return table


def minimal_request() -> objects.RequestSpec:
    return objects.RequestSpec(flavor=objects.Flavor())


def snapshot(table: HostTable) -> dict[str, Any]:
    """Everything *table* holds, for comparison."""
    names = ("rows", "services", "instances", "host_of_instance", "aggregates_of_host")
    return {
        **{name: copy.copy(getattr(table, name)) for name in names},
        **{
            (row, name): table.value(row, name)
            for row in table.rows.values()
            for name in (*columns.COLUMN_TYPES, *columns.TEXT_COLUMNS)
        },
        **{
            (row, name): pool.content(int(table.column(name)[row]))
            for name, pool in table.pools.items()
            for row in table.rows.values()
        },
    }
