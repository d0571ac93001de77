"""``claims``."""

import datetime
import json
import pathlib

import pytest

from scheduler import exit_codes, pci
from scheduler.claims import amounts
from scheduler.db import claims, rows, tables
from scheduler.hosts.host_state import Consumption, Fitting
from scheduler.numa import Wish
from tests.unit.numa.builders import guest, want
from tests.world.random_fleets import TOPOLOGY

NAMES = [f"6f70656e-0000-4000-8000-{number:012}" for number in range(1, 5)]


@pytest.fixture
def claim(database):
    def make(name, host, **columns):
        created = rows.utcnow()
        values = {
            "consumer_uuid": name,
            "host": host,
            "node": f"{host}.example",
            "generation": 1,
            "vcpus": 1,
            "memory_mb": 512,
            "disk_gb": 1,
            "request_id": "req-1/8d18dc95",
            "created_at": created,
            "expires_at": created + datetime.timedelta(seconds=600),
        }
        with database.write() as connection:
            claims.insert(connection, [{**values, **columns}])

    return make


@pytest.fixture
def instance(database):
    def make(name, host=None, **columns):
        values = {"uuid": name, "vm_state": "building", "task_state": "scheduling", "deleted": 0}
        place = {"host": host, "node": host and f"{host}.example", "created_at": rows.utcnow()}
        with database.write() as connection:
            connection.execute(tables.instances.insert().values({**values, **place, **columns}))

    return make


def test_list(manage, claim):
    claim(NAMES[0], "alpha")
    claim(NAMES[1], "beta")
    claim(NAMES[2], "beta", closed_at=rows.utcnow())
    first, second = manage("claims", "list")
    assert (first["consumer"], first["host"], first["memory_mb"]) == (NAMES[0], "alpha", 512)
    assert (second["request"], second["closed"]) == ("req-1", None)
    assert len(manage("claims", "list", "--all")) == 3
    assert len(manage("claims", "list", "--host", "beta")) == 1


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ([NAMES[0]], [NAMES[1]]),
        (["--host", "beta"], [NAMES[0]]),
        ([], NAMES[:2]),
        ([NAMES[3]], NAMES[:2]),
        ([NAMES[0], "--host", "alpha"], NAMES[:2]),
    ],
)
def test_release(claim, database, run, words, left):
    claim(NAMES[0], "alpha")
    claim(NAMES[1], "beta")
    status, out, err = run("claims", "release", *words)
    if left == NAMES[:2]:
        expected = exit_codes.FAILURE if words == [NAMES[3]] else exit_codes.USAGE
        assert (status, "CONSUMER" in err) == (expected, True)
    else:
        assert (status, out) == (exit_codes.OK, "1 claim(s) closed\n")
    with database.read() as connection:
        assert [each.consumer_uuid for each in claims.list_all(connection)] == left


def test_people_are_told_that_everything_agrees(run, add_host, claim):
    add_host("alpha", running_vms=0)
    claim(NAMES[0], "alpha")
    expected = (exit_codes.OK, "1 open claim(s), and everything agrees.\n", "")
    assert run("claims", "audit") == expected


def test_audit_of_hosts(manage, add_host, claim, instance):
    add_host("alpha", running_vms=1)
    instance(NAMES[0], "alpha", vm_state="active", task_state=None)
    claim(NAMES[0], "alpha")
    claim(NAMES[1], "gone")
    instance(NAMES[2], "alpha", vm_state="active")
    found = manage("claims", "audit", status=exit_codes.FAILURE)
    assert [(each["difference"], each["host"], each["consumer"]) for each in found] == [
        ("not closed: reported", "alpha", NAMES[0]),
        ("no compute node", "gone", NAMES[1]),
        ("report", "alpha", None),
    ]
    assert found[2]["what"] == "1 instances reported, 2 are there"


@pytest.mark.parametrize(
    ("cpus", "devices", "ends"),
    [
        pytest.param([2, 2, 2, 2], [0, 0, 0, 0], [], id="all cells"),
        pytest.param([4, 4], [2, 0], [], id="all of both"),
        pytest.param([4, 4, 2], [0, 0, 0], ["no NUMA cells that it fits on"], id="a cell too few"),
        pytest.param([2, 2], [1, 2], ["no free devices serve it."], id="a device too few"),
        pytest.param([0, 0], [2, 1], ["no free devices serve it."], id="devices alone"),
        pytest.param([6], [0], ["no NUMA cells that it fits on"], id="no such cell"),
    ],
)
def test_audit_of_cells_and_devices(manage, add_host, claim, instance, cpus, devices, ends):
    gpus = {"vendor_id": "10de", "product_id": "1db4", "numa_node": 0, "count": 2}
    add_host("alpha", running_vms=0, numa_topology=TOPOLOGY, pci_stats=json.dumps([gpus]))
    for number, (some, count) in enumerate(zip(cpus, devices, strict=True)):
        instance(NAMES[number])
        topology = guest(want(range(some), "dedicated")) if some else None
        asked = [pci.Request(count, ((("vendor_id", "10de"),),))] if count else []
        wish = Wish(topology, tuple(asked), None, Fitting())
        columns = amounts.to_columns(Consumption(512, 1024, 1, wish))
        claim(NAMES[number], "alpha", generation=number + 1, **columns)
    status = exit_codes.FAILURE if ends else exit_codes.OK
    found = manage("claims", "audit", status=status)
    assert [each["difference"] for each in found] == ["overbooked"] * len(ends)
    assert [each["consumer"] for each in found] == [NAMES[len(cpus) - 1]] * len(ends)
    assert [each["what"].split(": ")[-1] for each in found] == ends


@pytest.mark.parametrize("word", ["list", "audit"])
def test_claims_in_placement_are_not_looked_at_here(refused, config_file, word):
    with pathlib.Path(config_file).open("a", encoding="utf-8") as file:
        file.write("[scheduler]\nclaims = placement\n")
    assert "[scheduler] claims: it is placement" in refused("claims", word)
