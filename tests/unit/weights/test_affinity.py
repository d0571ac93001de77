"""(members per host, group; cells, move) -> weights that no recorded decision shows."""

import logging

import pytest

from scheduler import objects
from scheduler.weights.affinity import (
    ServerGroupSoftAffinityWeigher,
    ServerGroupSoftAntiAffinityWeigher,
)
from scheduler.weights.cross_cell import CrossCellWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates

U1, U2, U3, U4 = (f"aaaaaaaa-0000-4000-a000-00000000000{n}" for n in (1, 2, 3, 4))
MEMBERS = {"members": [U1, U2, U3, U4]}
SOFT = "soft-affinity"


def test_all_nodes_of_a_host_share_its_members():
    table = a_fleet(
        {"host": "h1", "node": "n1", "instances": [U1]}, {"host": "h1", "node": "n2"}, {}
    )
    request = a_request(group={"policy": SOFT, **MEMBERS})

    weigher = ServerGroupSoftAffinityWeigher(a_conf())

    assert weigher.raw(candidates(table), request).tolist() == [1, 1, 0]
    assert [weigher._weigh_object(state, request) for state in candidates(table)] == [1, 1, 0]


@pytest.mark.parametrize(
    "cls", [ServerGroupSoftAffinityWeigher, ServerGroupSoftAntiAffinityWeigher]
)
@pytest.mark.parametrize(
    ("chosen", "configured", "used"),
    [("current", 2.0, 2.0), ("current", -1.5, 0.0), ("newton", -1.5, -1.5)],
)
def test_a_multiplier_below_0(cls, chosen, configured, used, caplog):
    conf = a_conf(**{cls.multiplier_option: configured}, scheduler__semantics=chosen)

    with caplog.at_level(logging.WARNING):
        assert cls(conf).multipliers(candidates(a_fleet({}, {}))) == used
    assert [cls.multiplier_option in message for message in caplog.messages] == (
        [True] if configured < 0 else []
    )


C1, C2 = "c1c1c1c1-0000-4000-8000-000000000001", "c2c2c2c2-0000-4000-8000-000000000002"


def moving(cell, allowed):
    destination = objects.Destination(allow_cross_cell_move=allowed)
    if cell is not None:
        destination.cell = objects.CellMapping(uuid=cell)
    return a_request(requested_destination=destination)


@pytest.mark.parametrize(
    ("cells", "request_spec", "raw"),
    [
        pytest.param([C1, C2], a_request(), [0, 0], id="no move"),
        pytest.param([C1, C2], moving(C1, True), [1, -1], id="home first"),
        pytest.param([C1, C2], moving(C1, False), [0, 0], id="may not leave"),
        pytest.param([None, C1], moving(C1, True), [-1, 1], id="cell not known"),
    ],
)
def test_the_servers_own_cell_comes_first(cells, request_spec, raw):
    hosts = candidates(a_fleet(*[{"cell_uuid": cell} for cell in cells]))
    assert CrossCellWeigher(a_conf()).raw(hosts, request_spec).tolist() == raw
