"""What filters and weighers declare to read is what they read, over fleets of all kinds."""

import pytest
from hypothesis import HealthCheck, given, settings

from scheduler.filters.aggregate_image_properties_isolation import (
    AggregateImagePropertiesIsolation,
)
from scheduler.filters.compute_capabilities_filter import ComputeCapabilitiesFilter
from scheduler.filters.json_filter import JsonFilter
from scheduler.filters.numa_topology_filter import NUMATopologyFilter
from scheduler.filters.registry import all_filters
from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates, OneCandidate
from scheduler.hosts.inputs import Inputs
from scheduler.weights.registry import all_weighers
from tests import fleets
from tests.builders import a_conf, a_request, candidates
from tests.unit.numa.builders import guest, want

CONF = a_conf(image_props_weight_multiplier=1.0)
PARTS = [cls(CONF) for cls in (*all_filters(), *all_weighers()) if "inputs" in vars(cls)]
#: Read by all multipliers, so that nobody need declare it.
OF_MULTIPLIERS = "aggregates"
#: Parts of what is declared as ``heard_in_time``.
CLOCK = {"service_last_seen": columns.HEARD_IN_TIME}


class Recorder(Candidates):
    """Candidates that remember which columns were read."""

    def __init__(self, scope, rows, read):
        super().__init__(scope, rows)
        self.read = read

    def __getattr__(self, name):
        self.read.add(name)
        return super().__getattr__(name)

    def take(self, chosen):
        return Recorder(self.scope, self.rows[chosen], self.read)

    def per_value(self, name, read, dtype=bool):
        self.read.add(name)
        return super().per_value(name, read, dtype)

    def _distinct_documents(self, name):
        self.read.add(name)
        return super()._distinct_documents(name)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(table=fleets.fleets(), request_spec=fleets.requests())
def test_nothing_is_read_that_is_not_declared(part, table, request_spec):
    declared = Inputs.of(part)
    if declared.of_request(request_spec) is None:
        return
    hosts, read = candidates(table), set()
    recorder = Recorder(hosts.scope, hosts.rows, read)
    if hasattr(part, "conditions"):
        list(part.conditions(recorder, request_spec))
    else:
        part.raw(recorder, request_spec)
        read.discard(OF_MULTIPLIERS)
    assert {CLOCK.get(name, name) for name in read} <= set(declared.columns)


@pytest.mark.parametrize(
    "part", [part for part in PARTS if Inputs.of(part).apart], ids=lambda part: part.name
)
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(table=fleets.fleets(max_size=8), request_spec=fleets.requests())
def test_rows_that_are_not_set_apart_fare_alike(part, table, request_spec):
    declared = Inputs.of(part)
    if declared.of_request(request_spec) is not None:
        return
    apart, hosts = declared.apart(table, request_spec), candidates(table)
    others = hosts.take(~hosts.among(list(apart)))
    assert apart <= set(table.rows.values())
    if hasattr(part, "conditions"):
        several = [mask.tolist() for _reason, mask in part.conditions(others, request_spec)]
    else:
        several = [part.raw(others, request_spec).tolist()]
    assert all(len(set(found)) <= 1 for found in several)


@pytest.mark.parametrize(
    "part", [part for part in PARTS if Inputs.of(part).plain], ids=lambda part: part.name
)
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(table=fleets.fleets(max_size=8), request_spec=fleets.requests())
def test_single_numbers_do_as_well_as_columns(part, table, request_spec):
    hosts = candidates(table)
    alone = [OneCandidate(hosts.scope, row) for row in hosts.rows.tolist()]
    if hasattr(part, "conditions"):
        several = [mask.tolist() for _reason, mask in part.conditions(hosts, request_spec)]
        found = [[bool(one) for _reason, one in part.conditions(a, request_spec)] for a in alone]
        assert found == [list(of_host) for of_host in zip(*several, strict=True)]
    else:
        assert [part.raw(a, request_spec) for a in alone] == part.raw(hosts, request_spec).tolist()


def test_most_of_what_ships_here_can_be_kept():
    kept = {part.name for part in PARTS}
    assert {cls.__name__ for cls in all_filters()} - kept == {"TypeAffinityFilter"}
    assert {cls.__name__ for cls in all_weighers()} - kept == set()


def flavor(**extra_specs):
    return {"flavor": {"extra_specs": extra_specs}}


def query(text):
    return {"hints": {"query": [text]}}


PINNED = {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}
GUEST = guest(want(range(2), "dedicated")).to_object()
OTHER = guest(want(range(3), "dedicated")).to_object()

# filter: requests that it must tell apart
TOLD_APART = {
    AggregateImagePropertiesIsolation: [
        {},
        {"image": {}},
        {"image": {"os_distro": "debian"}},
        {"image": {"os_distro": "fedora"}},
    ],
    ComputeCapabilitiesFilter: [{}, flavor(a="1"), flavor(a="2"), flavor(a="1", b="1")],
    JsonFilter: [{}, query('["=", 1, 1]'), query('["=", 1, 2]')],
    NUMATopologyFilter: [
        {},
        flavor(**PINNED),
        {"numa_topology": GUEST},
        {"numa_topology": OTHER},
        {"numa_topology": GUEST, **flavor(**PINNED)},
    ],
}


@pytest.mark.parametrize(("cls", "several"), TOLD_APART.items(), ids=lambda each: str(each)[:60])
def test_requests_are_told_apart(cls, several):
    of_request = cls.inputs.of_request

    asked = [of_request(a_request(**each)) for each in several]

    assert len(set(asked)) == len(several)
    assert [of_request(a_request(**each)) for each in several] == asked


@pytest.mark.parametrize(
    ("cls", "fields"),
    [
        (ComputeCapabilitiesFilter, flavor(**{"a": "1", "capabilities:service:x": "1"})),
        (JsonFilter, query('["=", "$service.disabled", false]')),
        (JsonFilter, {"hints": {"query": ["two queries", "are none"]}}),
    ],
)
def test_requests_of_which_nothing_can_be_kept(cls, fields):
    assert cls.inputs.of_request(a_request(**fields)) is None
