"""Narrowing before any filter: the cell that a request may not leave."""

import pytest

from scheduler import objects
from scheduler.hosts import selector
from tests.builders import a_fleet, a_request, candidates, names

ONE, TWO, OTHER = (f"00000000-0000-4000-e000-00000000000{number}" for number in (1, 2, 3))


def in_cells(*cells, disabled=()):
    """A fleet with a host in each of *cells*, in this order."""
    table = a_fleet(*({"cell_uuid": uuid} for uuid in cells))
    table.cells.update((uuid, uuid in disabled) for uuid in cells)
    return table


@pytest.mark.parametrize(
    ("cells", "wanted", "may_cross", "left"),
    [
        ((ONE, TWO, ONE), ONE, False, ["h1", "h3"]),
        ((ONE, TWO, ONE), TWO, False, ["h2"]),
        ((ONE, TWO, ONE), OTHER, False, []),
        ((ONE, TWO, ONE), ONE, True, ["h1", "h2", "h3"]),
        ((ONE, TWO, ONE), None, False, ["h1", "h2", "h3"]),
        ((ONE, ONE, ONE), OTHER, False, []),
    ],
)
def test_a_request_stays_in_its_cell(cells, wanted, may_cross, left):
    hosts = candidates(in_cells(*cells))
    cell = None if wanted is None else objects.CellMapping(uuid=wanted)
    destination = objects.Destination(cell=cell, allow_cross_cell_move=may_cross)
    narrowed = selector.narrow(hosts, a_request(requested_destination=destination))
    assert names(narrowed.hosts) == left
    lost = len(cells) - len(left)
    assert narrowed.removed == ({"destination.other_cell": lost} if lost else {})
    assert not narrowed.skip_filters


def asking_for(uuid):
    cell = objects.CellMapping(uuid=uuid)
    return a_request(requested_destination=objects.Destination(cell=cell))


@pytest.mark.parametrize(
    ("request_spec", "left", "removed"),
    [
        (a_request(), ["h1", "h3"], {"cell.disabled": 1}),
        (asking_for(TWO), ["h2"], {"destination.other_cell": 2}),
        (asking_for(ONE), ["h1", "h3"], {"destination.other_cell": 1}),
        (a_request(force_hosts=["h2"]), [], {"cell.disabled": 1, "force_hosts.other": 2}),
    ],
)
def test_a_disabled_cell_is_for_those_who_ask_for_it(request_spec, left, removed):
    hosts = candidates(in_cells(ONE, TWO, ONE, disabled=[TWO]))
    narrowed = selector.narrow(hosts, request_spec)
    assert (names(narrowed.hosts), narrowed.removed) == (left, removed)


def test_an_undivided_fleet_is_every_cell():
    hosts = candidates(a_fleet({"cell_uuid": ONE}))
    assert names(selector.narrow(hosts, asking_for(OTHER)).hosts) == ["h1"]
