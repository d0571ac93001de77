"""(request, fleet) -> what the query is bound to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scheduler import objects
from scheduler.claims.placement.asking import fleet_of
from tests.builders import a_fleet, a_request


def manager(*hosts):
    return SimpleNamespace(table=a_fleet(*hosts), aggregates=["a1", "a2"])


HOSTS = (
    {"host": "H1", "node": "n1", "uuid": "one"},
    {"host": "H1", "node": "n2", "uuid": "two"},
    {"host": "h2", "node": "n1", "uuid": "three"},
    {"host": "h3", "node": "n1", "uuid": None},
)


def destination(**fields):
    return {"requested_destination": objects.Destination(**fields)}


@pytest.mark.parametrize(
    ("request_fields", "bound_to"),
    [
        pytest.param({}, None, id="anywhere"),
        pytest.param(destination(host="h2"), ("three",), id="a host"),
        pytest.param(destination(host="h1"), ("one", "two"), id="all nodes of a host"),
        pytest.param(destination(host="h1", node="n2"), ("two",), id="a node"),
        pytest.param(destination(host="h9"), (), id="a host that is not there"),
        pytest.param(destination(host="h3"), (), id="a host whose uuid is not known"),
        pytest.param(destination(), None, id="a destination without a host"),
        pytest.param(
            {**destination(host="h2"), "force_hosts": ["h1"]}, ("three",), id="a host before force"
        ),
        pytest.param({"force_hosts": ["h1"]}, ("one", "two"), id="forced host"),
        pytest.param({"force_nodes": ["n1"]}, ("one", "three"), id="forced nodes"),
        pytest.param({"force_hosts": ["h1"], "force_nodes": ["n1"]}, ("one",), id="forced both"),
        pytest.param({"force_hosts": ["h1", "h2"]}, ("one", "two", "three"), id="forced hosts"),
    ],
)
def test_what_a_request_is_bound_to(request_fields, bound_to):
    assert fleet_of(manager(*HOSTS), a_request(**request_fields)).bound_to == bound_to


@pytest.mark.parametrize(
    ("versions", "lowest"), [([], 0), ([74], 74), ([74, 73], 73), ([74, None], 0)]
)
def test_the_oldest_service(versions, lowest):
    found = fleet_of(manager(*({"service": {"version": each}} for each in versions)), a_request())

    assert (found.lowest_version, found.aggregates) == (lowest, ("a1", "a2"))
