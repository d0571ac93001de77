"""Which requests share results, what a change makes be asked again, and what is thrown away."""

import pytest

from scheduler import objects
from scheduler.filters.base import HostFilter, Reason
from scheduler.filters.numa_topology_filter import NUMATopologyFilter
from scheduler.filters.pci_passthrough_filter import PciPassthroughFilter
from scheduler.filters.ram_filter import RamFilter
from scheduler.hosts.candidates import Scope
from scheduler.hosts.inputs import Inputs
from scheduler.semantics import CURRENT
from scheduler.standing import StandingResults
from tests.builders import NOW, a_conf, a_fleet, a_request

BUSY = Reason("counting.busy", "the host is busy")


class CountingFilter(HostFilter):
    """Remembers of how many hosts it was asked."""

    reasons = (BUSY,)
    inputs = Inputs("num_io_ops", of_request=lambda request: request.project_id)

    def __init__(self, conf=None):
        super().__init__(conf)
        self.asked = []

    def conditions(self, hosts, request):
        self.asked.append(len(hosts))
        yield BUSY, hosts.num_io_ops < 3


class HeirFilter(CountingFilter):
    """Inherits the declaration, which does not speak for it."""


class StrangeRamFilter(RamFilter):
    """As above, of a filter that ships here."""

    def conditions(self, hosts, request):
        yield self.reasons[0], hosts.free_ram_mb > int(request.user_id)


def results(table, *filters, limit_bytes=10_000_000):
    return StandingResults(table, filters, (), CURRENT, 60.0, limit_bytes)


def ask(kept, project="p", now=NOW):
    return kept.of(a_request(project_id=project), Scope(kept.table, now, 60.0))


def a_device(request_id, **wanted):
    spec = [{"vendor_id": "8086", "product_id": "154c"}]
    asked = {"count": 1, "alias_name": "vf", "numa_policy": "required", **wanted}
    return objects.InstancePCIRequests(
        requests=[objects.InstancePCIRequest(spec=spec, request_id=request_id, **asked)]
    )


def test_servers_that_want_the_same_devices_share_results():
    """Every request for a device has an id of its own."""
    guest = objects.InstanceNUMATopology(
        cells=[objects.InstanceNUMACell(id=0, cpuset={0}, memory=1, pagesize=None)]
    )
    kept = results(a_fleet({}, {}), PciPassthroughFilter(a_conf()), NUMATopologyFilter(a_conf()))

    def ask_for(devices):
        spec = a_request(pci_requests=devices, numa_topology=guest)
        assert kept.of(spec, Scope(kept.table, NOW, 60.0)) is not None
        return len(kept)

    assert [ask_for(a_device(each)) for each in ("one", "two", None)] == [1, 1, 1]
    assert ask_for(a_device("three", count=2)) == 2


def test_servers_whose_images_differ_in_what_cells_they_want_share_nothing():
    kept = results(a_fleet({}, {}), NUMATopologyFilter(a_conf()))
    flavor = {"extra_specs": {"hw:cpu_policy": "dedicated"}}
    for policy in ("prefer", "require"):
        spec = a_request(flavor=flavor, image={"hw_cpu_thread_policy": policy})
        assert kept.of(spec, Scope(kept.table, NOW, 60.0)) is not None
    assert len(kept) == 2


def test_only_changed_rows_are_asked_about_again():
    table, each = a_fleet({}, {}, {}), CountingFilter()
    kept = results(table, each)
    ask(kept)
    table.add(1, {"num_io_ops": 7})
    standing = ask(kept)
    table.add(1, {"free_ram_mb": 7})
    ask(kept)
    assert each.asked == [3, 1]
    assert standing.verdicts.num_passing == 2


def test_requests_that_the_filter_tells_apart_share_nothing():
    table, each = a_fleet({}, {}), CountingFilter()
    kept = results(table, each)
    assert ask(kept, "p") is ask(kept, "p")
    assert ask(kept, "p") is not ask(kept, "q")
    assert each.asked == [2, 2]


@pytest.mark.parametrize("kind", [HeirFilter, StrangeRamFilter])
def test_a_declaration_is_not_inherited(kind):
    standing = ask(results(a_fleet({}), kind(a_conf())))
    assert not standing.is_complete


def test_the_least_recently_used_make_room():
    table, each = a_fleet({}, {}), CountingFilter()
    kept = results(table, each, limit_bytes=2 * ask(results(table, CountingFilter())).nbytes)
    for project in ("a", "b", "a", "c", "a", "b"):
        ask(kept, project)
        assert len(kept) <= 2
    assert each.asked == [2, 2, 2, 2]


def test_what_cannot_be_kept_leaves_nothing_behind():
    class BrokenFilter(CountingFilter):
        inputs = Inputs(of_request=lambda request: [])

    kept = results(a_fleet({}), BrokenFilter())
    assert ask(kept) is None
    assert len(kept) == 0
