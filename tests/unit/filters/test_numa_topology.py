"""(cells of the host, cells and devices asked for) -> fits or why not, and the limits."""

import pytest

from scheduler import numa, objects
from scheduler.engine.evaluation import FilterChain
from scheduler.filters.numa_topology_filter import NUMATopologyFilter
from scheduler.hosts.candidates import Candidates
from scheduler.numa import HostTopology
from scheduler.pci import Pools
from tests.builders import a_conf, a_fleet, a_host, a_request, candidates
from tests.unit.numa.builders import cell, guest, host, want

ONE, TWO = host(cell()), host(cell(0, range(4)), cell(1, range(4, 8)))
NICS = Pools.from_text('[{"vendor_id": "1", "product_id": "2", "numa_node": 1, "count": 1}]')


def a_filter(semantics="current"):
    return NUMATopologyFilter(a_conf(scheduler__semantics=semantics))


def asking(*cells, **fields):
    request = a_request(**fields)
    request.numa_topology = guest(*cells).to_object() if cells else None
    return request


@pytest.mark.parametrize(("semantics", "runs"), [("newton", True), ("current", False)])
def test_rebuilds_in_place(semantics, runs):
    request = asking(want(), hints={"_nova_check_type": ["rebuild"]})

    found = FilterChain([a_filter(semantics)]).run(candidates(a_fleet({})), request)

    assert (len(found.hosts) == 0) is runs


@pytest.mark.parametrize(
    ("topology", "request_", "limited"),
    [
        (ONE, asking(want()), True),
        (ONE, asking(), False),
        (None, asking(want()), False),
        (HostTopology(), asking(want()), False),
    ],
)
def test_limits_are_the_ratios_of_the_host(topology, request_, limited):
    state = a_host(numa_topology=topology, cpu_allocation_ratio=4.0, ram_allocation_ratio=1.5)

    limits = a_filter().limits(state, request_)

    assert list(limits) == (["numa_topology"] if limited else [])
    for each in limits.values():
        assert (each.cpu_allocation_ratio, each.ram_allocation_ratio) == (4.0, 1.5)
        assert not each.is_set("network_metadata")


def test_limits_carry_the_networks_of_the_request():
    metadata = objects.NetworkMetadata(physnets={"p1"}, tunneled=True)
    request = asking(want(), network_metadata=metadata)

    limits = a_filter().limits(a_host(numa_topology=ONE), request)["numa_topology"]

    assert limits.network_metadata.physnets == {"p1"}
    assert limits.network_metadata.tunneled is True


def test_fits_are_found_out_once_per_distinct_host(monkeypatch):
    kinds = [
        {"numa_topology": ONE},
        {"numa_topology": TWO.to_text()},
        {"numa_topology": TWO.to_text(), "cpu_allocation_ratio": 1.0},
        {"numa_topology": TWO.to_text(), "pci_stats": NICS},
    ]
    table = a_fleet(*kinds * 25)
    hosts = candidates(table)
    request = asking(want(), want(number=1))

    asked = []
    fits = numa.Wish.fits
    monkeypatch.setattr(numa.Wish, "fits", lambda *args: asked.append(args) or fits(*args))
    chain = FilterChain([a_filter()])

    left = chain.run(hosts, request).hosts
    assert (len(left), len(asked)) == (75, 4)

    table.update(table.rows["h2", "n2"], {"numa_topology": ONE})
    fitted = asking(want(number=7, pins=((0, 3),)), want(number=8))  # as the first one was placed
    left = chain.run(Candidates(hosts.scope, hosts.rows), fitted).hosts
    assert len(left) == 74
    assert len(asked) == 4  # h2 is now like h1
