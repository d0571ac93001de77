from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.db import flavors
from scheduler.db.tables import flavors as table
from tests.unit.db.builders import columns, flavor

USUAL = [
    ("1", "m1.tiny", 512, 1, 1),
    ("2", "m1.small", 2048, 1, 20),
    ("3", "m1.medium", 4096, 2, 40),
    ("4", "m1.large", 8192, 4, 80),
    ("5", "m1.xlarge", 16384, 8, 160),
]


def test_the_usual_ones_are_there(conn):
    found = flavors.list_all(conn)
    assert [(f.flavorid, f.name, f.memory_mb, f.vcpus, f.root_gb) for f in found] == USUAL
    assert {(f.ephemeral_gb, f.swap, f.rxtx_factor) for f in found} == {(0, 0, 1.0)}
    assert {(f.is_public, f.disabled) for f in found} == {(True, False)}


def test_create_flavor(conn):
    specs = {"hw:cpu_policy": "dedicated", "a": "1"}
    made = flavors.create(conn, flavor(extra_specs=specs, projects=["p1"], swap=64))
    assert (made.name, made.flavorid, made.swap) == ("big", "77", 64)
    assert (made.extra_specs, made.projects) == (specs, ["p1"])
    assert (made.ephemeral_gb, made.is_public) == (0, True)


def test_create_without_flavorid(conn):
    wanted = flavor()
    del wanted.__dict__["flavorid"]
    assert len(flavors.create(conn, wanted).flavorid) == 36


@pytest.mark.parametrize(
    "changes", [{"name": "m1.tiny"}, {"flavorid": "3"}], ids=["name", "flavorid"]
)
def test_create_what_is_there(conn, changes):
    with pytest.raises(errors.AlreadyExists, match="flavor"), conn.begin_nested():
        flavors.create(conn, flavor(**changes))


def test_each_way_to_find_one(conn):
    made = flavors.create(conn, flavor(name="2", extra_specs={"a": "b"}))
    for found in (
        flavors.get(conn, "id", made.id),
        flavors.get(conn, "name", "2"),
        flavors.get(conn, "flavorid", "77"),
    ):
        assert (found.id, found.extra_specs) == (made.id, {"a": "b"})


@pytest.mark.parametrize(
    ("column", "sought"), [("id", 999), ("name", "m1.huge"), ("flavorid", "m1.tiny")]
)
def test_missing_flavor(conn, column, sought):
    with pytest.raises(errors.FlavorNotFound, match=str(sought)):
        flavors.get(conn, column, sought)


def test_disks_of_an_old_row_may_be_null(conn):
    conn.execute(table.update().where(table.c.name == "m1.tiny").values(root_gb=None))
    assert columns(conn, table, name="m1.tiny")[0]["root_gb"] is None
    assert flavors.get(conn, "name", "m1.tiny").root_gb == 0
