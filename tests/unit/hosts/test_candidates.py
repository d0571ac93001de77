"""A selection of hosts; that columns, documents and values are read right: test_table."""

import numpy as np
import pytest

from scheduler import objects
from scheduler.hosts.candidates import Candidates, narrow
from tests.builders import a_fleet, a_request, candidates, names


@pytest.fixture
def hosts():
    return candidates(
        a_fleet(
            {"free_ram_mb": 10, "instances": ["u1", "u2"]},
            {"free_ram_mb": 20, "instances": ["u3"]},
            {"free_ram_mb": 10},
        )
    )


def test_the_view_of_a_host_is_the_same_within_a_decision(hosts):
    [first, *_others] = hosts
    assert hosts.take(np.array([0])).states()[0] is first
    assert names(Candidates.alone(first)) == ["h1"]


def test_hosts_are_named_exactly_and_instances_counted(hosts):
    assert hosts.named(["h3", "h1", "h9", "H2", "n2"]).tolist() == [True, False, True]
    assert hosts.count_instances(["u1", "u1", "u2", "u3", "U3", "u9"]).tolist() == [2, 1, 0]
    assert hosts.count_instances([]).tolist() == [0, 0, 0]


# --- before any filter: the cell that a request may not leave ---------------------------------

ONE, TWO, OTHER = (f"00000000-0000-4000-e000-00000000000{number}" for number in (1, 2, 3))


def asking_for(uuid, *, may_cross=False, **fields):
    cell = None if uuid is None else objects.CellMapping(uuid=uuid)
    destination = objects.Destination(cell=cell, allow_cross_cell_move=may_cross)
    return a_request(requested_destination=destination, **fields)


@pytest.mark.parametrize(
    ("disabled", "request_spec", "left", "removed"),
    [
        ([], asking_for(ONE), ["h1", "h3"], {"destination.other_cell": 1}),
        ([], asking_for(TWO), ["h2"], {"destination.other_cell": 2}),
        ([], asking_for(OTHER), [], {"destination.other_cell": 3}),
        ([], asking_for(ONE, may_cross=True), ["h1", "h2", "h3"], {}),
        ([], asking_for(None), ["h1", "h2", "h3"], {}),
        ([TWO], a_request(), ["h1", "h3"], {"cell.disabled": 1}),
        ([TWO], asking_for(TWO), ["h2"], {"destination.other_cell": 2}),
        ([TWO], asking_for(ONE), ["h1", "h3"], {"destination.other_cell": 1}),
        (
            *([TWO], a_request(force_hosts=["h2"])),
            *([], {"cell.disabled": 1, "force_hosts.other": 2}),
        ),
    ],
)
def test_a_request_stays_in_its_cell(disabled, request_spec, left, removed):
    """A disabled cell is for those who ask for it, and an undivided fleet is every cell."""
    table = a_fleet(*({"cell_uuid": uuid} for uuid in (ONE, TWO, ONE)))
    assert names(narrow(candidates(table), asking_for(OTHER)).hosts) == ["h1", "h2", "h3"]
    table.cells.update((uuid, uuid in disabled) for uuid in (ONE, TWO))
    narrowed = narrow(candidates(table), request_spec)
    assert (names(narrowed.hosts), narrowed.removed) == (left, removed)
    assert narrowed.skip_filters is bool(request_spec.force_hosts)
