"""``host`` and ``service``."""

import pytest

from conductor_stub import server_rows
from scheduler import exit_codes, objects
from scheduler.db import rows, services, tables
from tests.builders import put_node


def test_host_list(manage, add_host):
    first = add_host("alpha")
    add_host("beta", silent_seconds=300, vcpus_used=0)
    manage("aggregate", "create", "east", "--zone", "az-east")
    manage("aggregate", "add-host", "east", "alpha")
    manage("service", "set", "--disable", "beta", "nova-compute")
    alpha, beta = manage("host", "list")
    assert alpha == {
        "id": first,
        "host": "alpha",
        "node": "alpha.example",
        "zone": "az-east",
        "status": "enabled",
        "state": "up",
        "vcpus": {"used": 4, "total": 16},
        "ram_mb": {"used": 2048, "total": 32768},
        "disk_gb": {"used": 20, "total": 500},
        "instances": 2,
    }
    assert (beta["zone"], beta["status"], beta["state"]) == ("nova", "disabled", "down")


def test_host_show(manage, database, add_host):
    add_host("alpha", ram_allocation_ratio=2.0, cpu_allocation_ratio=0.0)
    uuid = "6f70656e-0000-4000-8000-000000000001"
    server = objects.Instance(uuid=uuid, host="alpha", node="alpha.example", vm_state="active")
    with database.write() as connection:
        server_rows.create_instance(connection, server)
    manage("aggregate", "create", "fast")
    manage("aggregate", "add-host", "fast", "alpha")
    shown = manage("host", "show", "alpha")
    expected = {
        "host": "alpha",
        "node": "alpha.example",
        "host_ip": "192.0.2.7",
        "zone": "nova",
        "status": "enabled",
        "state": "up",
        "memory_mb": 32768,
        "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 2.0,
        "disk_allocation_ratio": 1.0,
        "aggregates": ["fast"],
        "instances": [uuid],
    }
    assert shown | expected == shown


def test_names_that_are_null_are_shown_as_such(run, database, add_host):
    add_host("alpha")
    run("aggregate", "create", "fast")
    run("aggregate", "add-host", "fast", "alpha")
    with database.write() as connection:
        connection.execute(tables.aggregates.update().values(name=None))
    status, out, _err = run("host", "show", "alpha")
    assert status == exit_codes.OK
    assert "| aggregates            | None " in out


def test_host_with_several_nodes(manage, refused, database, add_host):
    add_host("ironic")
    with database.write() as connection:
        second = {"vcpus": 1, "memory_mb": 1, "local_gb": 1}
        second |= {"hypervisor_type": "ironic", "hypervisor_version": 1}
        put_node(connection, "ironic", "second", second)
    assert "ironic.example, second" in refused("host", "show", "ironic")
    shown = manage("host", "show", "ironic", "--node", "second")
    assert shown["node"] == "second"
    assert "third" in refused("host", "show", "ironic", "--node", "third")


def test_host_without_a_service_is_disabled_and_down(manage, database, add_host):
    add_host("alpha")
    with database.write() as connection:
        table = services.services
        rows.update(connection, table, table.c.host == "alpha", deleted=table.c.id)
    (alpha,) = manage("host", "list")
    assert (alpha["status"], alpha["state"]) == ("disabled", "down")
    assert manage("host", "show", "alpha")["state"] == "down"


def test_what_only_sqlite_keeps_hides_no_row_and_is_in_no_sum(manage, database, add_host):
    for name in ("alpha", "beta"):
        add_host(name)
        manage("aggregate", "create", name)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE compute_nodes SET memory_mb = 'much' WHERE id = 1")
        connection.exec_driver_sql("UPDATE services SET report_count = 'x' WHERE id = 1")
        connection.exec_driver_sql("UPDATE aggregates SET name = x'61ff' WHERE id = 1")
    (zone,), (_alpha, beta) = manage("host", "list", "--summary"), manage("host", "list")
    assert (zone["hosts"], zone["ram_mb"]["total"]) == (2, beta["ram_mb"]["total"])
    assert [each["host"] for each in manage("service", "list")] == ["alpha", "beta"]
    assert [each["name"] for each in manage("aggregate", "list")] == ["a\\xff", "beta"]


def test_service_list(manage, database, add_host):
    add_host("alpha")
    with database.write() as connection:
        services.get_or_create(connection, "ctl", "nova-scheduler", "scheduler", 16)
    compute, sched = manage("service", "list")
    names = ("binary", "host", "zone")
    assert [compute[name] for name in names] == ["nova-compute", "alpha", "nova"]
    assert [sched[name] for name in names] == ["nova-scheduler", "ctl", "internal"]
    (only,) = manage("service", "list", "--host", "ctl")
    assert only == sched
    assert manage("service", "list", "--service", "nova-compute") == [compute]


def test_zones_of_a_service_in_two_of_them(manage, add_host):
    add_host("alpha")
    for name, zone in (("one", "az1"), ("two", "az2"), ("again", "az1")):
        manage("aggregate", "create", name, "--zone", zone)
        manage("aggregate", "add-host", name, "alpha")
    assert manage("service", "list")[0]["zone"] == "az1,az2"
    assert manage("host", "list")[0]["zone"] == "az1"
    assert manage("host", "list", "--zone", "az2")[0]["zone"] == "az2"
    assert manage("host", "list", "--zone", "az3") == []


@pytest.mark.parametrize(
    ("words", "status", "state", "reason"),
    [
        (["--disable"], "disabled", "up", None),
        (["--disable", "--disable-reason", "disk swap"], "disabled", "up", "disk swap"),
        (["--down"], "enabled", "down", None),
        (["--disable", "--down"], "disabled", "down", None),
    ],
)
def test_service_set_and_back(manage, add_host, words, status, state, reason):
    add_host("alpha")
    manage("service", "set", *words, "alpha", "nova-compute")
    (row,) = manage("service", "list")
    assert (row["status"], row["state"], row["disabled_reason"]) == (status, state, reason)
    manage("service", "set", "--enable", "--up", "alpha", "nova-compute")
    (row,) = manage("service", "list")
    assert (row["status"], row["state"], row["disabled_reason"]) == ("enabled", "up", None)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["alpha", "nova-compute"], "--enable"),
        (["--enable", "--disable", "alpha", "nova-compute"], "not allowed with"),
        (["--up", "--down", "alpha", "nova-compute"], "not allowed with"),
        (["--enable", "--disable-reason", "x", "alpha", "nova-compute"], "needs --disable"),
    ],
)
def test_service_set_usage(refused, database, words, part):
    assert part in refused("service", "set", *words, status=exit_codes.USAGE)
