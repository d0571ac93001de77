"""(cells of the host, cells and devices asked for) -> fits or why not, and the limits."""

from __future__ import annotations

import pytest

from scheduler import numa, objects
from scheduler.engine.evaluation import FilterChain
from scheduler.filters.numa_topology_filter import NUMATopologyFilter
from scheduler.hosts.candidates import Candidates
from scheduler.numa import HostTopology, Networks, Pages
from scheduler.pci import Pools
from tests.builders import a_conf, a_fleet, a_host, a_request, candidates, verdict
from tests.unit.numa.builders import cell, guest, host, want

THREADS, ABSENT, UNFIT = ["numa.threads"], ["numa.absent"], ["numa.unfit"]
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


@pytest.mark.parametrize(
    ("columns", "request_", "reasons"),
    [
        pytest.param({}, asking(), [], id="nothing wanted, no cells"),
        pytest.param({"numa_topology": ONE}, asking(), [], id="nothing wanted"),
        pytest.param({}, asking(want()), ABSENT, id="no cells"),
        pytest.param({"numa_topology": HostTopology()}, asking(want()), ABSENT, id="empty"),
        pytest.param({"numa_topology": "not json"}, asking(want()), ABSENT, id="unreadable"),
        pytest.param({"numa_topology": ONE.to_text()}, asking(want()), [], id="one cell"),
        pytest.param({"numa_topology": ONE}, asking(want(range(5))), UNFIT, id="too many CPUs"),
        pytest.param({"numa_topology": ONE}, asking(want(), want()), UNFIT, id="too few cells"),
        pytest.param({"numa_topology": TWO}, asking(want(), want()), [], id="two cells"),
        pytest.param(
            {"numa_topology": host(cell(pinned={0, 1, 2}))},
            asking(want(policy="dedicated")),
            UNFIT,
            id="pinned already",
        ),
        pytest.param(
            {"numa_topology": host(cell(cpu_usage=63)), "cpu_allocation_ratio": 16.0},
            asking(want({0})),
            [],
            id="the last of the ratio",
        ),
        pytest.param(
            {"numa_topology": host(cell(cpu_usage=64)), "cpu_allocation_ratio": 16.0},
            asking(want({0})),
            UNFIT,
            id="over the ratio",
        ),
        pytest.param(
            {"numa_topology": TWO, "pci_stats": NICS}, asking(want(), devices=1), [], id="device"
        ),
        pytest.param(
            {"numa_topology": ONE, "pci_stats": NICS},
            asking(want(), devices=1),
            UNFIT,
            id="device on a cell that is not there",
        ),
        pytest.param(
            {"numa_topology": ONE, "pci_stats": NICS}, asking(want(), devices=0), [], id="no device"
        ),
        pytest.param(
            {"numa_topology": ONE, "pci_stats": NICS},
            asking(devices=1),
            [],
            id="devices alone are another filter's",
        ),
        pytest.param({"numa_topology": ONE}, asking(extra_specs=REQUIRE), THREADS, id="threads"),
        pytest.param({"numa_topology": SIBLINGS}, asking(extra_specs=REQUIRE), [], id="siblings"),
        pytest.param({}, asking(extra_specs=REQUIRE), [], id="threads, no cells"),
        pytest.param(
            {"numa_topology": ONE},
            asking(image={"hw_cpu_policy": "dedicated", "hw_cpu_thread_policy": "require"}),
            THREADS,
            id="threads wanted by the image",
        ),
        pytest.param(
            {"numa_topology": host(cell(networks=Networks(frozenset({"p1"}))), cell(1, {4}))},
            asking(
                want({0}), network_metadata=objects.NetworkMetadata(physnets={"p1"}, tunneled=False)
            ),
            [],
            id="network at hand",
        ),
        pytest.param(
            {"numa_topology": host(cell(), cell(1, {4}, networks=Networks(frozenset({"p1"}))))},
            asking(
                want(range(2)),
                network_metadata=objects.NetworkMetadata(physnets={"p1"}, tunneled=False),
            ),
            UNFIT,
            id="network at a cell that is too small",
        ),
    ],
)
def test_cells_decide(columns, request_, reasons):
    assert verdict(a_filter(), a_host(**columns), request_) == reasons


@pytest.mark.parametrize(
    ("semantics", "columns", "request_", "reasons"),
    [
        ("newton", {"numa_topology": ONE}, asking(want(), devices=1), UNFIT),
        ("current", {"numa_topology": ONE}, asking(want(), devices=1), []),
        ("newton", {"numa_topology": host(cell(pages=(Pages(4, 1),)))}, asking(want()), []),
        ("current", {"numa_topology": host(cell(pages=(Pages(4, 1),)))}, asking(want()), UNFIT),
    ],
    ids=["no pools, newton", "no pools", "small pages, newton", "small pages"],
)
def test_what_the_semantics_decide(semantics, columns, request_, reasons):
    assert verdict(a_filter(semantics), a_host(**columns), request_) == reasons


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
    fits = numa.fits
    monkeypatch.setattr(numa, "fits", lambda *args, **kw: asked.append(args) or fits(*args, **kw))
    chain = FilterChain([a_filter()])

    left, _counts = chain.run(hosts, request)
    assert (len(left), len(asked)) == (75, 4)

    table.update(table.rows["h2", "n2"], {"numa_topology": ONE})
    fitted = asking(want(number=7, pins=((0, 3),)), want(number=8))  # as the first one was placed
    left, _counts = chain.run(Candidates(hosts.scope, hosts.rows), fitted)
    assert len(left) == 74
    assert len(asked) == 4  # h2 is now like h1
