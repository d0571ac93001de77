"""Rows come, change and go; everything else stays as it is."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler import errors, objects
from scheduler.hosts import columns
from scheduler.hosts.columns import NEVER, DocumentPool
from scheduler.hosts.table import HostTable
from scheduler.numa import HostTopology
from scheduler.pci import Pools
from tests.builders import NOW, a_fleet, a_host, candidates
from tests.world import random_fleets

HOSTS = st.sampled_from(["h1", "h2", "H1"])
KEYS = st.tuples(HOSTS, st.sampled_from(["n1", "n2", None]))
UUIDS = st.sampled_from(["u1", "u2", "u3"])
COMBINED = ("host", "free_ram_mb", "cpu_info")
UNSET = {"free_ram_mb": 0, "cpu_info": None, "host_ip": None, "bare_metal": False}


def everything(table):
    instances = {host: dict(several) for host, several in table.instances.items()}
    return {**random_fleets.snapshot(table), "instances": instances}


class TableMachine(RuleBasedStateMachine):
    """Beside it a dictionary per kind of thing."""

    def __init__(self):
        super().__init__()
        self.table = HostTable()
        self.rows, self.services, self.aggregates, self.homes = {}, {}, {}, {}

    @rule(
        key=KEYS,
        values=st.fixed_dictionaries(
            {},
            optional={
                "node_id": st.integers(1, 99),
                "free_ram_mb": st.integers(-10, 10),
                "cpu_info": st.sampled_from([None, "a", "b" * 500]),
                "host_ip": st.sampled_from([None, "192.0.2.1"]),
                "bare_metal": st.booleans(),
            },
        ),
    )
    def put(self, key, values):
        taken = {row["node_id"] for other, row in self.rows.items() if other != key}
        if key not in self.rows and values.get("node_id", 0) in {*taken, 0}:
            values = {**values, "node_id": max(taken, default=0) + 1}
        elif values.get("node_id") in taken:
            del values["node_id"]
        self.table.put(key, values)
        self.rows.setdefault(key, dict(UNSET)).update(values)

    @rule(key=KEYS)
    def remove(self, key):
        if self.rows.pop(key, None):
            self.table.remove(key)

    @rule(key=KEYS, amount=st.integers(-3, 3), times=st.integers(1, 3))
    def add(self, key, amount, times):
        if key in self.rows:
            row = self.table.rows[key]
            self.table.add([row] * times, {"free_ram_mb": amount})
            self.table.add([row], {"free_ram_mb": 1}, -1)
            self.rows[key]["free_ram_mb"] += times * amount - 1

    @rule(
        host=HOSTS,
        disabled=st.sampled_from([True, False, None]),
        version=st.integers(0, 3),
        is_down=st.booleans(),
    )
    def set_service(self, host, disabled, version, is_down):
        """With *disabled* of None it goes; 0 is no version."""
        record = {"disabled": disabled, "version": version or None, "forced_down": is_down}
        record = None if disabled is None else record
        self.table.set_service(host, record, NOW + version)
        self.services.pop(host, None)
        if record is not None:
            self.services[host] = record

    @rule(aggregates=st.dictionaries(HOSTS, st.sampled_from(["ssd", "gpu"])))
    def set_aggregates(self, aggregates):
        self.aggregates = aggregates
        self.table.set_aggregates(
            {
                host: (objects.Aggregate(id=1, uuid="a", name="a", metadata={key: "yes"}),)
                for host, key in aggregates.items()
            }
        )

    @rule(host=HOSTS, uuid=UUIDS)
    def put_instance(self, host, uuid):
        self.table.put_instance(host, uuid, f"{uuid} on {host}")
        self.homes[uuid] = host

    @rule(uuid=UUIDS)
    def drop_instance(self, uuid):
        self.table.drop_instance(uuid)
        self.homes.pop(uuid, None)

    @rule(is_copy_kept=st.booleans())
    def go_on_with_one_of_two(self, is_copy_kept):
        """What becomes of one leaves the other as it is."""
        twin = self.table.copy()
        before = everything(self.table)
        assert everything(twin) == before
        kept, left = (twin, self.table) if is_copy_kept else (self.table, twin)
        for key in list(left.rows):
            left.put(key, {"free_ram_mb": 77, "cpu_info": "77"})
            left.remove(key)
        for uuid in list(left.host_of_instance):
            left.drop_instance(uuid)
        left.set_service("h1", {"disabled": True, "version": 9}, NOW)
        left.put_instance("h1", "u9", "another")
        assert everything(kept) == before
        self.table = kept

    @invariant()
    def rows_are_those_put(self):
        table = self.table
        assert table.rows.keys() == self.rows.keys()
        for key, row in table.rows.items():
            assert {name: table.value(row, name) for name in self.rows[key]} == self.rows[key]
            host, service = key[0], self.services.get(key[0])
            assert (table.value(row, "host"), table.value(row, "nodename")) == key
            assert dict(table.service(row)) == (service or {})
            seen = NOW + (service["version"] or 0) if service else NEVER
            assert table.last_seen.get(host, NEVER) == seen
            if service:  # without one it is no candidate
                assert table.value(row, "service_disabled") is service["disabled"]
                assert table.value(row, "service_last_seen") == seen
            aggregates = [list(each.metadata) for each in table.value(row, "aggregates")]
            assert aggregates == ([[self.aggregates[host]]] if host in self.aggregates else [])

    @invariant()
    def they_are_found(self):
        table, with_node = self.table, {host for host, _node in self.rows}
        numbers = sorted((row["node_id"], key) for key, row in self.rows.items())
        order = [key for _number, key in numbers if key[0] in self.services]
        assert [table.rows[key] for key in order] == table.order.tolist()
        assert table.row_of_node == {number: table.rows[key] for number, key in numbers}
        living = (each for each in self.services.values() if not each["forced_down"])
        versions = [each["version"] or 0 for each in living]
        assert table.lowest_service_version == min(versions, default=0)
        assert sorted(table.spellings(["h1"])) == sorted(with_node & {"h1", "H1"})
        for host in ("h1", "h2", "H1"):
            rows = {table.rows[key] for key in self.rows if key[0] == host}
            assert set(table.row_numbers([host, "h9"])) == rows
        assert table.known_hosts() == {*with_node, *self.services, *self.homes.values()}

    @invariant()
    def instances_are_on_one_host(self):
        table = self.table
        on = {}
        for uuid, host in self.homes.items():
            on.setdefault(host, {})[uuid] = f"{uuid} on {host}"
        assert (table.host_of_instance, table.instances) == (self.homes, on)
        hosts = candidates(table)
        rows = [(state.host, self.rows[state.host, state.nodename]) for state in hosts]
        shown = [0 if row["bare_metal"] else len(on.get(host, ())) for host, row in rows]
        assert hosts.count_instances(["u1", "u2", "u3", "u3", "u9"]).tolist() == shown

    @invariant()
    def equal_contents_share_a_number(self):
        table = self.table
        texts = [row["cpu_info"] for row in self.rows.values()]
        assert len(table.pools["cpu_info"]) == len(set(texts))
        pool, numbers = table.combinations(COMBINED)
        for row in table.rows.values():
            values = table.parsed_values(COMBINED, pool.content(int(numbers[row])))
            assert values == tuple(table.value(row, name) for name in COMBINED)

    @invariant()
    def candidates_are_read_in_order(self):
        hosts = candidates(self.table)
        rows = [self.rows[state.host, state.nodename] for state in hosts]
        assert hosts.free_ram_mb.tolist() == [row["free_ram_mb"] for row in rows]
        for name in ("cpu_info", "host_ip"):
            wanted, asked = [row[name] for row in rows], Counter()

            def read(value, asked=asked):
                asked[value] += 1
                return str(value)

            found = hosts.per_document(name, read, "U999")
            assert found.tolist() == list(map(str, wanted))
            assert asked == Counter(set(wanted))
        assert hosts.having("host_ip", ["192.0.2.1"]).tolist() == [
            row["host_ip"] is not None for row in rows
        ]


TestTable = TableMachine.TestCase
TestTable.settings = settings(deadline=None, max_examples=50, stateful_step_count=25)


def test_rows_are_updated_in_place_and_columns_are_read_only():
    table = a_fleet({}, {})
    column = table.column("free_ram_mb")
    assert table.put(("h1", "n1"), {"free_ram_mb": -5}) == 0
    assert column[:2].tolist() == [-5, 4096]
    for array in (column, table.column("stats"), candidates(table).free_ram_mb):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(TypeError):
        table.service(0)["disabled"] = True


def test_numbers_are_whole_and_exact():
    table = a_fleet({"free_disk_mb": 2**41 + 1, "hypervisor_version": 7_000_001})
    [largest, version] = [table.value(0, name) for name in ("free_disk_mb", "hypervisor_version")]
    assert (largest, version, type(largest)) == (2**41 + 1, 7_000_001, int)
    table.add([0, 0], {"free_disk_mb": -1})
    assert table.value(0, "free_disk_mb") == 2**41 - 1


def test_hosts_that_come_leave_no_number_of_a_document_unused():
    table = a_fleet({"stats": {"a": "1"}}, {"stats": {"a": "2"}}, {"stats": {"a": "1"}})
    assert {name for name, pool in table.pools.items() if pool.capacity > len(pool)} == set()


def test_a_removed_row_leaves_nothing_to_the_next_one(monkeypatch):
    filled = {"stats": {"a": "1"}, "host_ip": "192.0.2.1", "aggregates": [{"ssd": "yes"}]}
    table = a_fleet({**filled, "service": {"disabled": True, "forced_down": True}})
    fresh = HostTable()
    monkeypatch.setattr("scheduler.hosts.table.FIRST_CAPACITY", 0)
    table.remove(("h1", "n1"))
    assert table.put(("h9", None), {}) == 0
    fresh.put(("h9", None), {})
    for name in (*columns.COLUMN_TYPES, *columns.TEXT_COLUMNS, *columns.DOCUMENT_PARSERS):
        assert table.value(0, name) == fresh.value(0, name)
    assert not table.service(0)


def test_hosts_that_replace_others_leave_it_in_order_and_small():
    table, hosts = HostTable(), 200
    for number in range(hosts):
        a_host(f"h{number}", f"n{number}", table=table, node_id=number, stats={"n": number % 7})
    assert [each["n"] for each in map(lambda row: table.value(row, "stats"), range(hosts))] == [
        number % 7 for number in range(hosts)
    ]
    for number in range(hosts, 10 * hosts):
        table.remove((f"h{number - hosts}", f"n{number - hosts}"))
        a_host(f"h{number}", f"n{number}", table=table, node_id=number)
        assert number >= 2 * hosts - 1 or (np.diff(table.order) > 0).all()
    assert table.capacity <= 4 * hosts
    assert list(table.column("node_id")[table.order]) == list(range(9 * hosts, 10 * hosts))


def test_an_aggregate_without_a_uuid_counts():
    """Those of Nova's releases before Mitaka have none."""
    table = HostTable()
    row = table.put(("h1", "n1"), {"node_id": 1})
    old = objects.Aggregate(id=1, name="old", metadata={"availability_zone": "az"})
    table.set_aggregates({"h1": (old,)})
    (found,) = table.value(row, "aggregates")
    assert (found.id, found.name, found.availability_zone) == (1, "old", "az")


# --- documents ------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "text",
    ["bad", "x" * 5000, '{"é": "\ud800"}' * 40, json.dumps({str(n): n for n in range(300)})],
    ids=["short", "alike", "half a surrogate", "a document"],
)
def test_a_text_comes_back_as_it_was_and_is_parsed_once(text):
    parsed, complaints = [], []

    def parse(content):
        parsed.append(content)
        if content == "bad":
            raise errors.InvalidRequest(field="f", reason="r")
        return [content]

    pool = DocumentPool(parse, lambda number, error: complaints.append((number, str(error))))
    number = pool.acquire(text)
    assert pool.acquire(text[:1] + text[1:]) == number
    assert pool.acquire(text + " ") != number
    assert pool.content(number) == text
    assert pool.parsed(number) is pool.parsed(number)
    if text == "bad":
        assert (pool.parsed(number), parsed) == ([None], ["bad", None])
        assert complaints == [(number, "Invalid request: f: r")]
    else:
        assert (pool.parsed(number), parsed, complaints) == ([text], [text], [])
    asked = []

    def ask():
        answer = pool.memo("question", np.bool_).of_numbers
        return answer(np.array([number]), lambda missing: asked.append(missing) or {number: True})

    assert (ask(), ask(), asked) == ([True], [True], [[number]])
    for _user in range(2):
        pool.release(number)
    assert pool.acquire("another") == number
    assert (ask(), asked) == ([True], [[number]] * 2), "forgotten"
