"""What fields accept, and what they make of it."""

import datetime
from ipaddress import IPv4Address, IPv6Address
from uuid import UUID

import pytest

from scheduler import objects
from scheduler.objects import fields

NOON = datetime.datetime(2026, 1, 2, 12, 0, 1, 999999, tzinfo=datetime.UTC)
TEXTS = list[str]
MAPPING = dict[str, str]


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        *((str, 5, "5"), (str, 1.5, "1.5"), (str, True, "True")),
        *((int, "5", 5), (int, 98304.7, 98304), (int, True, 1)),
        *((float, 2, 2.0), (float, "1.5", 1.5), (UUID, 12, "12")),
        *((bool, "False", True), (bool, 0, False)),
        *((fields.FLEXIBLE_BOOL, " YES ", True), (fields.FLEXIBLE_BOOL, "False", False)),
        *((fields.FLEXIBLE_BOOL, 1, True), (fields.FLEXIBLE_BOOL, "2", False)),
        (datetime.datetime, "2026-01-02T12:00:01.999999Z", NOON),
        (datetime.datetime, "2026-01-02 12:00:01.999999", NOON),
        (datetime.datetime, NOON.replace(tzinfo=None), NOON),
        (fields.IP, "192.0.2.1", IPv4Address("192.0.2.1")),
        (fields.IP, "2001:db8::1", IPv6Address("2001:db8::1")),
        *((fields.PREDICATE, each, each) for each in (" != 2 , == 3.1.4 ", ">=2.5.post1")),
        *((TEXTS, (1, "a"), ["1", "a"]), (TEXTS, {"a"}, ["a"])),
        (set[int], ["1", 2, 2], {1, 2}),
        *((MAPPING, {"a": 1}, {"a": "1"}), (dict[str, int], {"0": "7"}, {"0": 7})),
        (dict[str, str | None], {"a": None}, {"a": None}),
    ],
)
def test_coerced(kind, given, kept):
    value = fields.Field(kind).accept("f", given)
    assert value == kept
    assert type(value) is type(kept)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        *[(str, bad) for bad in ({}, [])],
        *[(int, bad) for bad in ("5.0", "x", float("inf"), {})],
        (float, "x"),
        *[(datetime.datetime, bad) for bad in ("noon", 5)],
        *[(fields.IP, "300.1.1.1"), (IPv4Address, "2001:db8::1"), (IPv6Address, "192.0.2.1")],
        *[(fields.PREDICATE, bad) for bad in ("abc", "=1.0", "~>1.0", "2.6", ">=2.6,")],
        *[(TEXTS, bad) for bad in ("text", {"a": 1}, 5, ["a", ["b"]], [None])],
        *[(MAPPING, bad) for bad in ([("a", "b")], {1: "b"}, {"a": None}, {"a": {}})],
        *[(fields.EnumOf(("a", "b")), bad) for bad in ("A", [])],
    ],
)
def test_refused(kind, given):
    with pytest.raises(fields.BadValue) as caught:
        fields.Field(kind).accept("f", given)
    assert caught.value.path.startswith("f")


@pytest.mark.parametrize(
    ("field", "kept"),
    [
        (fields.Field(int, nullable=True, default=3), None),
        (fields.Field(int, default=3), 3),
        (fields.Field(set[int], default=set), set()),
    ],
)
def test_null(field, kept):
    assert field.accept("f", None) == kept


def test_null_without_a_default_is_refused():
    with pytest.raises(fields.BadValue, match="cannot be null"):
        fields.Field(int).accept("f", None)


def test_assigned_collections_are_the_objects_own():
    hosts = ["h1"]
    group = objects.InstanceGroup(hosts=hosts)
    hosts.append("h2")
    assert group.hosts == ["h1"]


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NOON, "2026-01-02T12:00:01Z"),
        ("2026-01-02T12:00:01.5+02:00", "2026-01-02T12:00:01+02:00"),
        ("2026-01-02T12:00:01", "2026-01-02T12:00:01Z"),
    ],
)
def test_datetimes_on_the_wire(moment, text):
    flavor = objects.Flavor(created_at=moment)
    assert flavor.obj_to_primitive()["nova_object.data"]["created_at"] == text
