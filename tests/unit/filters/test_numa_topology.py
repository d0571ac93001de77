"""Where the filter runs and how often; worked and recorded decisions show what fits."""

import pytest

from scheduler import numa
from scheduler.engine.evaluation import FilterChain
from scheduler.filters.numa_topology_filter import NUMATopologyFilter
from scheduler.hosts.candidates import Candidates
from scheduler.pci import Pools
from tests.builders import a_conf, a_fleet, a_request, candidates
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
