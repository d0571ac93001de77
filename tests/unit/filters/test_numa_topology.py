"""(cells of the host, cells and devices asked for) -> fits or why not, and the limits."""

from __future__ import annotations

import pytest

from scheduler import numa, objects
from scheduler.engine.evaluation import FilterChain
from scheduler.filters.numa_topology_filter import NUMATopologyFilter
from scheduler.hosts.candidates import Candidates
from scheduler.numa import HostTopology, Networks, Pages
from scheduler.pci import Pools
from tests.builders import a_conf, a_fleet, a_host, a_request, candidates
from tests.unit.filters.judging import judge, rows
from tests.unit.numa.builders import cell, guest, host, want

THREADS, ABSENT, UNFIT = "numa.threads", "numa.absent", "numa.unfit"
ONE, TWO = host(cell()), host(cell(0, range(4)), cell(1, range(4, 8)))
SIBLINGS = host(cell(siblings=[[0, 1], [2, 3]]))
REQUIRE = {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}
NICS = Pools.from_text('[{"vendor_id": "1", "product_id": "2", "numa_node": 1, "count": 1}]')


def a_filter(semantics="current"):
    conf = a_conf()
    conf.set_override("semantics", semantics, group="scheduler")
    return NUMATopologyFilter(conf)


def asking(*cells, extra_specs=None, devices=None, **fields):
    request = a_request(flavor={"extra_specs": extra_specs or {}}, **fields)
    request.numa_topology = guest(*cells).to_object() if cells else None
    if devices is not None:
        specs = [{"vendor_id": "1"}]
        one = objects.InstancePCIRequest(count=devices, spec=specs, numa_policy="required")
        request.pci_requests = objects.InstancePCIRequests(requests=[one] if devices else [])
    return request


def on(topology, **columns):
    return {"numa_topology": topology, **columns}


P1 = {"network_metadata": objects.NetworkMetadata(physnets={"p1"}, tunneled=False)}
NETWORK = Networks(frozenset({"p1"}))
THREADED = {"hw_cpu_policy": "dedicated", "hw_cpu_thread_policy": "require"}
SMALL_PAGES = host(cell(pages=(Pages(4, 1),)))


@pytest.mark.parametrize(
    ("columns", "request_", "reason"),
    rows(
        ("nothing wanted, no cells", {}, asking(), ""),
        ("nothing wanted", on(ONE), asking(), ""),
        ("no cells", {}, asking(want()), ABSENT),
        ("empty", on(HostTopology()), asking(want()), ABSENT),
        ("unreadable", on("not json"), asking(want()), ABSENT),
        ("one cell", on(ONE.to_text()), asking(want()), ""),
        ("too many CPUs", on(ONE), asking(want(range(5))), UNFIT),
        ("too few cells", on(ONE), asking(want(), want()), UNFIT),
        ("two cells", on(TWO), asking(want(), want()), ""),
        ("pinned", on(host(cell(pinned={0, 1, 2}))), asking(want(policy="dedicated")), UNFIT),
        ("the last of the ratio", on(host(cell(cpu_usage=63))), asking(want({0})), ""),
        ("over the ratio", on(host(cell(cpu_usage=64))), asking(want({0})), UNFIT),
        ("device", on(TWO, pci_stats=NICS), asking(want(), devices=1), ""),
        ("device elsewhere", on(ONE, pci_stats=NICS), asking(want(), devices=1), UNFIT),
        ("no device", on(ONE, pci_stats=NICS), asking(want(), devices=0), ""),
        ("devices alone are another filter's", on(ONE, pci_stats=NICS), asking(devices=1), ""),
        ("threads", on(ONE), asking(extra_specs=REQUIRE), THREADS),
        ("siblings", on(SIBLINGS), asking(extra_specs=REQUIRE), ""),
        ("threads, no cells", {}, asking(extra_specs=REQUIRE), ""),
        ("threads wanted by the image", on(ONE), asking(image=THREADED), THREADS),
        ("network at hand", on(host(cell(networks=NETWORK), cell(1, {4}))),
         asking(want({0}), **P1), ""),
        ("network at a cell that is too small", on(host(cell(), cell(1, {4}, networks=NETWORK))),
         asking(want(range(2)), **P1), UNFIT),
    ),
)  # fmt: skip
def test_cells_decide(columns, request_, reason):
    assert judge(NUMATopologyFilter, columns, request_) == reason


@pytest.mark.parametrize(
    ("semantics", "columns", "request_", "reason"),
    rows(
        ("no pools, newton", "newton", on(ONE), asking(want(), devices=1), UNFIT),
        ("no pools", "current", on(ONE), asking(want(), devices=1), ""),
        ("small pages, newton", "newton", on(SMALL_PAGES), asking(want()), ""),
        ("small pages", "current", on(SMALL_PAGES), asking(want()), UNFIT),
    ),
)
def test_what_the_semantics_decide(semantics, columns, request_, reason):
    assert judge(NUMATopologyFilter, columns, request_, semantics=semantics) == reason


@pytest.mark.parametrize(("semantics", "runs"), [("newton", True), ("current", False)])
def test_rebuilds_in_place(semantics, runs):
    request = asking(want(), hints={"_nova_check_type": ["rebuild"]})

    left, _counts = FilterChain([a_filter(semantics)]).run(candidates(a_fleet({})), request)

    assert (len(left) == 0) is runs


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


def test_a_host_that_passes_gets_its_limits_when_asked_alone():
    state = a_host(numa_topology=ONE)

    assert a_filter().host_passes(state, asking(want()))
    assert state.limits["numa_topology"].cpu_allocation_ratio == 16.0


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

    left, _counts = chain.run(hosts, request)
    assert (len(left), len(asked)) == (75, 4)

    table.update(table.rows["h2", "n2"], {"numa_topology": ONE})
    fitted = asking(want(number=7, pins=((0, 3),)), want(number=8))  # as the first one was placed
    left, _counts = chain.run(Candidates(hosts.scope, hosts.rows), fitted)
    assert len(left) == 74
    assert len(asked) == 4  # h2 is now like h1
