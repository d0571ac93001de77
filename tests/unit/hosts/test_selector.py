"""Narrowing before any filter: the cell that a request may not leave."""

import pytest

from scheduler import objects
from scheduler.hosts import selector
from tests.builders import a_fleet, a_request, candidates, names

ONE, TWO, OTHER = (f"00000000-0000-4000-e000-00000000000{number}" for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("cells", "wanted", "may_cross", "left"),
    [
        ((ONE, TWO, ONE), ONE, False, ["h1", "h3"]),
        ((ONE, TWO, ONE), TWO, False, ["h2"]),
        ((ONE, TWO, ONE), OTHER, False, []),
        ((ONE, TWO, ONE), ONE, True, ["h1", "h2", "h3"]),
        ((ONE, TWO, ONE), None, False, ["h1", "h2", "h3"]),
        ((ONE, ONE, ONE), OTHER, False, ["h1", "h2", "h3"]),
    ],
)
def test_a_request_stays_in_its_cell(cells, wanted, may_cross, left):
    hosts = candidates(a_fleet(*({"cell_uuid": uuid} for uuid in cells)))
    cell = None if wanted is None else objects.CellMapping(uuid=wanted)
    destination = objects.Destination(cell=cell, allow_cross_cell_move=may_cross)
    narrowed = selector.narrow(hosts, a_request(requested_destination=destination))
    assert names(narrowed.hosts) == left
    lost = len(cells) - len(left)
    assert narrowed.removed == ({"destination.other_cell": lost} if lost else {})
    assert not narrowed.skip_filters
