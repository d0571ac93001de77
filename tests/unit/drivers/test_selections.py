"""A placement as Selections: one of its own for every instance and alternate."""

from scheduler.drivers.selections import selections_of
from scheduler.engine.decision import Placement
from scheduler.hosts.candidates import Scope
from tests.builders import NOW, a_fleet

CELL = "aaaaaaaa-0000-4000-a000-00000000000c"
NODES = [f"aaaaaaaa-0000-4000-a000-00000000000{number}" for number in (1, 2)]
ZONE = [{"availability_zone": "z1"}]


def a_placement():
    """Two instances on one host, the second under other limits, with one alternate for both."""
    table = a_fleet(
        {"uuid": NODES[0], "cell_uuid": CELL, "aggregates": ZONE},
        {"uuid": NODES[1], "cell_uuid": CELL},
    )
    scope = Scope(table, NOW, 60.0)
    chosen, other = scope.state(0), scope.state(1)
    other.limits = {"memory_mb": 512.5}
    limits = [{"memory_mb": 1024.5}, {"memory_mb": 2048.5}]
    return Placement([chosen, chosen], limits, [[other], [other]])


def test_every_selection_tells_of_its_host_and_limits():
    made = selections_of(a_placement(), "nova")
    told = [
        [(s.service_host, s.availability_zone, s.limits.memory_mb, s.limits_exact) for s in row]
        for row in made
    ]
    alternate = ("h2", "nova", 512, {"memory_mb": 512.5})
    assert told == [
        [("h1", "z1", 1024, {"memory_mb": 1024.5}), alternate],
        [("h1", "z1", 2048, {"memory_mb": 2048.5}), alternate],
    ]


def test_what_is_written_into_one_selection_shows_in_no_other():
    [[_first, one], [_second, other]] = selections_of(a_placement(), "nova")
    one.allocation_request = "{}"
    assert other.allocation_request == "null"


def test_limits_that_are_no_numbers_are_taken_as_they_are():
    placement = a_placement()
    placement.limits[0]["licences"] = placement.limits[1]["licences"] = ["one"]
    [[first, _one], [second, _other]] = selections_of(placement, "nova")
    assert first.limits_exact == {"memory_mb": 1024.5, "licences": ["one"]}
    assert second.limits.memory_mb == 2048
