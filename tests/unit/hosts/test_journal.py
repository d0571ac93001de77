"""The journal: what changed since a position, and when that is no longer known."""

import pytest

from scheduler.hosts import columns
from scheduler.hosts.journal import Journal
from scheduler.hosts.table import HostTable
from tests.builders import a_fleet

RAM, INSTANCES = columns.BITS["free_ram_mb"], columns.BITS[columns.INSTANCES]


def test_changes_of_one_row_come_together():
    journal = Journal()
    begin = journal.position
    journal.note(3, 1)
    journal.note(5, 2)
    journal.note(3, 4)
    assert journal.since(begin, columns.EVERYTHING) == {3: 5, 5: 2}
    assert journal.since(begin, 4) == {3: 4}
    assert journal.since(journal.position, columns.EVERYTHING) == {}


def test_what_is_too_long_ago_is_not_known():
    journal = Journal(kept=4)
    for row in range(10):
        journal.note(row, 1)
    assert journal.since(0, columns.EVERYTHING) is None
    assert journal.since(6, columns.EVERYTHING) == {6: 1, 7: 1, 8: 1, 9: 1}


def _aggregates(table: HostTable) -> None:
    table.set_aggregates({})


CHANGES = {
    "a value": (lambda table: table.update(0, {"free_ram_mb": 7}), {0: RAM}),
    "the same value": (lambda table: table.update(0, {"free_ram_mb": 4096}), {}),
    "an amount": (lambda table: table.add(1, {"free_ram_mb": -7}), {1: RAM}),
    "a report": (lambda table: table.put(("h2", "n2"), {"uuid": "u"}), {1: columns.BITS["uuid"]}),
    "a document": (
        lambda table: table.set_document(0, "stats", "{}"),
        {0: columns.BITS["stats"]},
    ),
    "the same document": (lambda table: table.set_document(0, "stats", None), {}),
    "the same aggregates": (_aggregates, {}),
    "a host taken out": (lambda table: table.remove(("h1", "n1")), {0: columns.EVERYTHING}),
    "a service dropped": (
        lambda table: table.set_service("h2", None, 0.0),
        {1: columns.EVERYTHING},
    ),
    "a service disabled": (
        lambda table: table.set_service("h2", {"disabled": True}, 0.0),
        {1: columns.BITS["service_disabled"]},
    ),
    "a heartbeat": (lambda table: table.set_service("h2", {}, 5.0), {}),
    "an instance": (lambda table: table.put_instance("h1", "u", object()), {0: INSTANCES}),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_every_change_of_the_table_is_noted(change, expected):
    table = a_fleet({}, {})
    begin = table.changes.position
    change(table)
    assert table.changes.since(begin, columns.EVERYTHING) == expected


def test_an_instance_that_moves_changes_both_hosts():
    table = a_fleet({"instances": ["u"]}, {})
    begin = table.changes.position
    table.put_instance("h2", "u", object())
    assert table.changes.since(begin, columns.EVERYTHING) == {0: INSTANCES, 1: INSTANCES}


def test_columns_cannot_be_written_past_the_journal():
    table = a_fleet({})
    with pytest.raises(ValueError, match="read-only"):
        table.column("free_ram_mb")[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        table.document_numbers("stats")[0] = 1


def test_candidates_are_ordered_by_compute_node_id():
    table = a_fleet({"node_id": 3}, {"node_id": 1}, {"node_id": 2})
    assert table.order.tolist() == [1, 2, 0]
    assert not table.in_order
    table.remove(("h1", "n1"))
    assert table.order.tolist() == [1, 2]
    assert table.in_order
