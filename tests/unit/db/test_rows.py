import datetime
import ipaddress

import pytest

from scheduler import objects
from scheduler.db import rows, tables
from tests.unit.db.builders import flavor

ZONE = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (datetime.datetime(2026, 1, 2, 5, 0, 0, 999, ZONE), datetime.datetime(2026, 1, 2, 3)),
        (datetime.datetime(2026, 1, 2, 5, 0, 0, 999), datetime.datetime(2026, 1, 2, 5)),
        (ipaddress.ip_address("2001:db8::1"), "2001:db8::1"),
        ([["x86_64", "qemu", "hvm"]], '[["x86_64", "qemu", "hvm"]]'),
        ({"a": None}, '{"a": null}'),
        ([], "[]"),
        ("text", "text"),
        (0, 0),
        (None, None),
    ],
)
def test_column_values(value, stored):
    assert rows.to_column(value) == stored


def test_columns_of_an_object_are_its_set_fields_but_not_the_row_s_own():
    made = flavor(id=7, created_at=datetime.datetime(2026, 1, 1), extra_specs={"a": "b"})
    values = rows.to_columns(made, tables.flavors)
    assert values == {"name": "big", "memory_mb": 1024, "vcpus": 2, "root_gb": 10, "flavorid": "77"}


def test_null_is_left_out_where_the_field_cannot_be_null():
    row = {"id": 1, "name": None, "memory_mb": None, "no_such_field": 1}
    found = rows.to_object(objects.Flavor, row, vcpus=3)
    assert found.set_fields() == {"id": 1, "name": None, "vcpus": 3}


def test_soft_delete_reaches_only_the_living(conn):
    for host in ("h1", "h2"):
        rows.insert(conn, tables.services, host=host, report_count=0)
    of_h1 = tables.services.c.host == "h1"
    assert rows.soft_delete(conn, tables.services, of_h1) == 1
    assert rows.soft_delete(conn, tables.services, of_h1) == 0
