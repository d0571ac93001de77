"""Rows come, change and go; everything else stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import objects
from scheduler.hosts.table import NEVER, HostTable
from scheduler.numa import HostTopology
from scheduler.pci import Pools
from tests.builders import NOW, a_fleet, a_host


def _hosts(table):
    return [table.value(row, "host") for row in table.order.tolist()]


def test_rows_are_updated_in_place():
    table = a_fleet({}, {})
    row = table.rows["h1", "n1"]
    column = table.column("free_ram_mb")

    assert table.put(("h1", "n1"), {"free_ram_mb": -5, "host_ip": "192.0.2.1"}) == row

    assert (table.value(row, "free_ram_mb"), table.value(row, "host_ip")) == (-5, "192.0.2.1")
    assert table.value(row, "total_usable_ram_mb") == 4096
    assert table.column("free_ram_mb") is column
    assert table.value(table.rows["h2", "n2"], "free_ram_mb") == 4096


def test_order_is_by_node_id_of_hosts_with_a_service():
    table = a_fleet({"node_id": 30}, {"node_id": 10}, {"node_id": 20})
    assert _hosts(table) == ["h2", "h3", "h1"]

    table.set_service("h3", None, 0.0)
    assert _hosts(table) == ["h2", "h1"]
    assert table.hosts_without_service() == ["h3"]

    table.set_service("h3", {"disabled": False}, NOW)
    table.put(("h3", "n3"), {"node_id": 40})
    assert _hosts(table) == ["h2", "h1", "h3"]


def test_a_removed_row_leaves_nothing_to_the_next_one(monkeypatch):
    table = a_fleet(
        {
            "stats": {"a": "1"},
            "cpu_info": "{}",
            "host_ip": "192.0.2.1",
            "service": {"disabled": True, "forced_down": True},
            "aggregates": [{"ssd": "yes"}],
        }
    )
    row = table.rows["h1", "n1"]
    monkeypatch.setattr("scheduler.hosts.table.FIRST_CAPACITY", 0)
    table.remove(("h1", "n1"))
    assert len(table) == 0
    assert _hosts(table) == []
    assert table.hosts_without_service() == []

    assert table.put(("h9", None), {}) == row

    assert table.value(row, "free_ram_mb") == 0
    assert table.value(row, "stats") == {}
    assert table.value(row, "cpu_info") is None
    assert table.value(row, "host_ip") is None
    assert table.value(row, "aggregates") == []
    assert table.value(row, "service_disabled") is False
    assert table.value(row, "service_last_seen") == NEVER
    assert not table.service(row)


def test_a_host_keeps_its_service_and_aggregates_over_its_nodes():
    table = HostTable()
    aggregate = objects.Aggregate(id=1, uuid="u", name="a", metadata={"ssd": "yes"})
    table.set_service("h1", {"disabled": True, "id": 7}, NOW)
    table.set_aggregates({"h1": (aggregate,)})

    rows = [table.put(("h1", node), {}) for node in ("n1", "n2")]

    for row in rows:
        assert table.value(row, "service_disabled") is True
        assert table.value(row, "service_last_seen") == NOW
        assert [each.metadata for each in table.value(row, "aggregates")] == [{"ssd": "yes"}]
        assert table.service(row)["id"] == 7
    assert table.row_numbers(["h1", "h2"]) == rows
    table.set_aggregates({})
    assert [table.value(row, "aggregates") for row in rows] == [[], []]


def test_a_service_record_cannot_be_changed_through_the_table():
    record = {"disabled": False}
    table = a_fleet({"service": record})
    row = table.rows["h1", "n1"]

    with pytest.raises(TypeError):
        table.service(row)["disabled"] = True


def test_an_instance_is_on_one_host():
    table = a_fleet({"instances": ["u1", "u2"]}, {})
    table.put_instance("h2", "u1", "moved")

    assert set(table.instances["h1"]) == {"u2"}
    assert table.instances["h2"] == {"u1": "moved"}
    table.drop_instance("u2")
    table.drop_instance("unknown")
    assert set(table.instances) == {"h2"}
    assert table.host_of_instance == {"u1": "h2"}


def test_a_node_that_got_another_number_is_found_by_that_alone():
    table = a_fleet({"node_id": 7})
    row = table.put(("h1", "n1"), {"node_id": 8})
    assert table.row_of_node == {8: row}


def test_the_documents_of_a_removed_row_are_forgotten():
    table = a_fleet({"stats": {"a": "1"}})
    before = len(HostTable().pools["stats"])
    table.remove(("h1", "n1"))
    assert len(table.pools["stats"]) == before


def test_documents_are_shared_and_forgotten():
    table = a_fleet({"stats": {"a": "1"}}, {"stats": {"a": "1"}}, {"stats": {"b": "2"}})
    first, second, _third = (table.rows[f"h{n}", f"n{n}"] for n in (1, 2, 3))

    assert table.value(first, "stats") is table.value(second, "stats")
    table.put(("h3", "n3"), {"stats": None})
    assert len(table.pools["stats"]) == 2


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("stats", None, {}),
        ("stats", "", {}),
        ("stats", '{"a": "1"}', {"a": "1"}),
        ("stats", "[1]", {}),
        ("stats", "not json", {}),
        ("supported_instances", None, []),
        ("supported_instances", '[["x86_64", "kvm", "hvm"]]', [["x86_64", "kvm", "hvm"]]),
        ("supported_instances", "{}", []),
        ("metrics", "null", []),
        ("cpu_info", "not json", "not json"),
        ("numa_topology", None, None),
        ("numa_topology", "{}", HostTopology()),
        ("numa_topology", "not json", None),
        ("numa_topology", '{"nova_object.namespace": "other", "nova_object.name": "x"}', None),
        ("numa_topology", HostTopology(), HostTopology()),
        ("pci_stats", None, None),
        ("pci_stats", "[]", Pools()),
        ("pci_stats", '[{"vendor_id": "1"}]', None),
        ("pci_stats", Pools(), Pools()),
    ],
)
def test_documents_that_cannot_be_read_are_empty(name, text, value):
    table = HostTable()
    row = table.put(("h1", "n1"), {name: text})

    assert table.value(row, name) == value
    assert table.content(row, name) == text


def test_one_warning_names_the_nodes_of_a_document_that_cannot_be_read(caplog):
    table = HostTable()
    rows = [table.put((f"h{n}", f"n{n}"), {"numa_topology": "not json"}) for n in (1, 2)]

    assert [table.value(row, "numa_topology") for row in (*rows, *rows)] == [None] * 4
    [message] = caplog.messages
    assert message.startswith("numa_topology of compute node n1, n2 cannot be read")


_keys = st.tuples(st.sampled_from(["h1", "h2", "h3"]), st.sampled_from(["n1", "n2", None]))
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _keys, st.integers(-10, 10), st.sampled_from([None, "a", "b"])),
        st.tuples(st.just("remove"), _keys, st.none(), st.none()),
    ),
    max_size=300,
)


@given(_steps)
def test_any_course_of_events_leaves_what_was_put_last(steps):
    table, expected = HostTable(), {}
    for what, key, number, text in steps:
        if what == "put":
            table.put(key, {"free_ram_mb": number, "cpu_info": text})
            expected[key] = (number, text)
        elif key in expected:
            table.remove(key)
            del expected[key]

    found = {
        key: (table.value(row, "free_ram_mb"), table.value(row, "cpu_info"))
        for key, row in table.rows.items()
    }
    assert found == expected
    assert {table.value(row, "host") for row in table.rows.values()} == {h for h, _n in expected}
    assert len(table.pools["cpu_info"]) == len({text for _number, text in expected.values()})
    assert sum(len(rows) for rows in table.rows_of_host.values()) == len(expected)


def test_hosts_that_replace_others_leave_it_in_order_and_small():
    table, hosts = HostTable(), 200
    for number in range(hosts):
        a_host(f"h{number}", f"n{number}", table=table, node_id=number)
    for number in range(hosts, 2 * hosts - 1):
        table.remove((f"h{number - hosts}", f"n{number - hosts}"))
        a_host(f"h{number}", f"n{number}", table=table, node_id=number)
        assert (np.diff(table.order) > 0).all()
    for number in range(2 * hosts - 1, 20 * hosts):  # no sizes without end
        table.remove((f"h{number - hosts}", f"n{number - hosts}"))
        a_host(f"h{number}", f"n{number}", table=table, node_id=number)
    assert table.capacity <= 4 * hosts
    assert list(table.column("node_id")[table.order]) == list(range(19 * hosts, 20 * hosts))


def test_the_table_grows_without_losing_anything():
    table = HostTable()
    for number in range(200):
        a_host(f"h{number}", f"n{number}", table=table, free_ram_mb=number, stats={"n": number % 7})

    rows = [table.rows[f"h{n}", f"n{n}"] for n in range(200)]
    assert [table.value(row, "free_ram_mb") for row in rows] == list(range(200))
    assert [table.value(row, "stats") for row in rows] == [{"n": n % 7} for n in range(200)]
    assert len(table.order) == 200


def test_an_aggregate_without_a_uuid_counts():
    """Those of Nova's releases before Mitaka have none."""
    table = HostTable()
    row = table.put(("h1", "n1"), {"node_id": 1})
    old = objects.Aggregate(id=1, name="old", metadata={"availability_zone": "az"})
    table.set_aggregates({"h1": (old,)})
    (found,) = table.value(row, "aggregates")
    assert (found.id, found.name, found.availability_zone) == (1, "old", "az")


@pytest.mark.parametrize(
    ("host", "known"), [("h1", True), ("h2", True), ("h3", True), ("h4", False), ("H1", False)]
)
def test_what_is_known_of(host, known):
    table = HostTable()
    table.put(("h1", "n1"), {})
    table.set_service("h2", {}, NOW)
    table.put_instance("h3", "u1", "instance")

    assert table.is_known(host) is known


def test_spellings_of_a_name():
    table = a_fleet({"host": "Alpha"}, {"host": "alpha"}, {"host": "beta"}, {"host": "Alpha"})

    assert table.spellings(["alpha", "beta", "gamma"]) == ["Alpha", "alpha", "beta"]
    table.remove(("Alpha", "n1"))
    table.remove(("Alpha", "n4"))
    assert table.spellings(["alpha"]) == ["alpha"]


def test_a_copy_has_all_of_a_row_and_shares_nothing():
    table = a_fleet({"host_ip": "192.0.2.1", "stats": {"a": "1"}, "instances": ["u1"]}, {})
    twin = table.copy()
    row = twin.rows["h1", "n1"]

    twin.update(row, {"free_ram_mb": 1, "host_ip": "192.0.2.2"})
    twin.drop_instance("u1")
    twin.remove(("h2", "n2"))
    twin.put(("h1", "n9"), {"node_id": 9})

    assert (table.value(row, "free_ram_mb"), table.value(row, "host_ip")) == (4096, "192.0.2.1")
    assert (twin.value(row, "free_ram_mb"), twin.value(row, "host_ip")) == (1, "192.0.2.2")
    assert twin.value(row, "stats") == {"a": "1"}
    assert table.host_of_instance == {"u1": "h1"}
    assert _hosts(table) == ["h1", "h2"]
    assert table.row_numbers(["h1", "h2"]) == [0, 1]
    assert twin.row_numbers(["h1", "h2"]) == [0, 2]
