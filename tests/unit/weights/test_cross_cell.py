"""(cells of the hosts, destination of the request) -> weights."""

from __future__ import annotations

import pytest

from scheduler import objects
from scheduler.weights.cross_cell import CrossCellWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions

C1, C2 = "c1c1c1c1-0000-4000-8000-000000000001", "c2c2c2c2-0000-4000-8000-000000000002"


def moving(cell, allowed):
    destination = objects.Destination(allow_cross_cell_move=allowed)
    if cell is not None:
        destination.cell = objects.CellMapping(uuid=cell)
    return a_request(requested_destination=destination)


@pytest.mark.parametrize(
    ("cells", "request_spec", "weights"),
    [
        pytest.param([C1, C2], a_request(), [0.0, 0.0], id="no move"),
        pytest.param([C1, C2], moving(C1, True), [1000000.0, 0.0], id="home first"),
        pytest.param([C1, C2], moving(C1, False), [0.0, 0.0], id="may not leave"),
        pytest.param([C1, C2], moving(None, True), [0.0, 0.0], id="no cell"),
        pytest.param([C2, C2], moving(C1, True), [0.0, 0.0], id="all elsewhere"),
        pytest.param([None, C1], moving(C1, True), [0.0, 1000000.0], id="cell not known"),
    ],
)
def test_hosts_are_weighed(cells, request_spec, weights):
    hosts = candidates(a_fleet(*[{"cell_uuid": cell} for cell in cells]))

    found, _order = contributions(CrossCellWeigher(a_conf()), hosts, request_spec)

    assert found == pytest.approx(weights)


def test_outside_is_worse_than_nothing_to_say():
    hosts = candidates(a_fleet({"cell_uuid": C1}, {"cell_uuid": C2}))

    assert CrossCellWeigher(a_conf()).raw(hosts, moving(C1, True)).tolist() == [1, -1]
