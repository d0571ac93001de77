"""Routed networks: segments from a stand-in for Neutron, their aggregates from a real Placement."""

import json

import pytest

from scheduler import objects
from tests.functional.placement_fleet import a_name
from tests.functional.test_placement_claims import BOTH, a_worker, database, fleet
from tests.servers.loopback_http import LoopbackServer, QuietHandler

__all__ = ["database", "fleet"]

OPTION = "query_placement_for_routed_network_aggregates"


class Neutron(LoopbackServer):
    """Answers each path as ``answers`` says."""

    def __init__(self):
        self.answers = {}
        super().__init__(_Handler)


class _Handler(QuietHandler):
    def answer(self):
        found = self.server.owner.answers.get(self.path)
        self.send(404 if found is None else 200, json.dumps(found).encode())


@pytest.fixture
def neutron():
    with Neutron() as server:
        yield server


def networks(**ids):
    request = objects.NetworkRequest(**{"network_id": None, **ids})
    return {"requested_networks": objects.NetworkRequestList(objects=[request])}


@BOTH
def test_hosts_are_on_a_segment_of_each_network(fleet, neutron):
    here, there, network, port = (a_name() for _each in range(4))
    fleet.add("p1", report={"free_ram_mb": 9000})
    fleet.add("p2", aggregates=[here])
    fleet.add("p3", aggregates=[there])
    segments = {name: a_name() for name in (here, there)}
    for aggregate, segment in segments.items():
        fleet.placement.add_node(segment, {}, aggregates=[aggregate])
    subnets = [{"segment_id": segments[each]} for each in (here, there)]
    neutron.answers = {
        f"/v2.0/subnets?network_id={network}": {"subnets": subnets},
        f"/v2.0/ports/{port}": {"port": {"network_id": network, "fixed_ips": [{"subnet_id": "s"}]}},
        "/v2.0/subnets/s": {"subnet": subnets[1]},
    }
    worker = a_worker(fleet)
    on_network, with_port = networks(network_id=network), networks(port_id=port)
    assert worker.hosts("req-1", [a_name()], 64, **on_network) == ["p1"]
    conf = worker.conf
    conf.set_override(OPTION, True, group="scheduler")
    conf.set_override("auth_type", "none", group="neutron")
    conf.set_override("endpoint_override", neutron.endpoint, group="neutron")
    worker.driver.claims.reconfigured(conf)()
    name = a_name()
    ((chosen, *others),) = worker.select("req-2", [name], 64, **on_network)
    assert sorted(each.service_host for each in (chosen, *others)) == ["p2", "p3"]
    assert fleet.host_of(name) == [chosen.service_host]
    assert worker.hosts("req-3", [a_name()], 64, **with_port) == ["p3"]
    assert worker.hosts("req-4", [a_name()], 64) == ["p1"]
