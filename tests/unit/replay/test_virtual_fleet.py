"""A fleet in memory: what is placed, moved and taken away, and what stays as it was."""

import pytest

from scheduler import errors
from scheduler.hosts.columns import seconds
from scheduler.replay.description import rows_of
from scheduler.replay.row_fleet import RowFleet, moment
from scheduler.replay.virtual_fleet import VirtualClock, VirtualFleet
from tests.builders import a_conf, a_request

UUIDS = [f"00000000-0000-4000-b000-{number:012}" for number in range(200)]
NOW = "2026-11-21T00:00:00Z"
COUNTERS = ("free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "num_io_ops")


def a_fleet(text="4 × 8 cores/16 GiB/100 GiB, 2 zones", **options):
    return VirtualFleet.from_description(a_conf(**options), text)


def numbers(fleet):
    return {name: fleet.table.column(name)[fleet.table.order].tolist() for name in COUNTERS}


def hosts_of(fleet):
    return dict(fleet.table.host_of_instance)


@pytest.mark.parametrize(
    ("text", "hosts", "zones"),
    [
        ("2000 × 64 cores/256 GiB, 3 zones", [(64, 262144, 10_000)] * 2000, 3),
        ("1x8 cores/512MiB", [(8, 512, 10_000)], 0),
        (
            "2 * 64 cores/1 TiB/2 TiB + 1 × 1 core/4 GB/50 GB, 1 zone",
            [(64, 1048576, 2048), (64, 1048576, 2048), (1, 4096, 50)],
            1,
        ),
    ],
)
def test_descriptions(text, hosts, zones):
    rows = rows_of(text, 0.0)
    nodes = rows["compute_nodes"]
    assert [(each["vcpus"], each["memory_mb"], each["local_gb"]) for each in nodes] == hosts
    assert len(rows["aggregates"]) == zones


@pytest.mark.parametrize(
    "text",
    [
        "",
        "many",
        "0 × 1 core/1 GiB",
        "1 × 0 cores/1 GiB",
        "5 × 1 core",
        "1 × 1 core/1 GiB, 2 zones, 3 zones",
    ]
    + ["200001 × 1 core/1 GiB", "1 × 1 core/1 GiB + 0 × 1 core/1 GiB", "1 × 1 core/1 PiB"],
)
def test_what_is_no_description(text):
    with pytest.raises(errors.InvalidRequest, match="fleet"):
        rows_of(text, 0.0)


def test_what_was_placed_and_taken_away_leaves_nothing_behind():
    fleet = a_fleet()
    before = numbers(fleet)
    outcome = fleet.place(a_request(), UUIDS[:6])
    assert len(outcome.servers) == 6
    assert sum(numbers(fleet)["num_instances"]) == sum(numbers(fleet)["num_io_ops"]) == 6
    assert set(hosts_of(fleet)) == set(UUIDS[:6])
    fleet.finish_builds(outcome.servers[:4])
    fleet.finish_builds(outcome.servers[:4])
    assert sum(numbers(fleet)["num_io_ops"]) == 2
    fleet.remove(outcome.servers)
    fleet.remove(outcome.servers)
    fleet.finish_builds(outcome.servers[4:])  # whose lives were shorter than that
    assert numbers(fleet) == before
    assert not hosts_of(fleet)
    assert not fleet.spec_of
    assert not list(fleet.reservations)


def test_services_never_time_out_and_the_clock_never_goes_back():
    fleet = a_fleet()
    fleet.clock.advance(fleet.clock() + 30 * 86400)
    assert not fleet.place(a_request(), UUIDS[:1]).is_refused
    with pytest.raises(ValueError, match="went back by 1 s"):
        fleet.clock.advance(fleet.clock() - 1)


def test_hosts_that_are_disabled_or_taken_out_get_nothing():
    fleet = a_fleet("2 × 8 cores/16 GiB")
    (server,) = fleet.place(a_request(), UUIDS[:1]).servers
    host = server.key[0]
    (other,) = {"host-1", "host-2"} - {host}
    fleet.set_disabled(other)
    assert fleet.place(a_request(), UUIDS[1:2]).servers[0].key[0] == host
    fleet.set_disabled(other, disabled=False)
    gone = fleet.take_out(host)
    assert {each.uuid for each in gone} == set(UUIDS[:2])
    assert not hosts_of(fleet)
    assert fleet.place(a_request(), UUIDS[:2]).servers[1].key[0] == other
    fleet.remove(gone)
    assert set(hosts_of(fleet)) == set(UUIDS[:2])


def test_a_fleet_that_was_read_keeps_down_hosts_and_adopts_its_servers():
    node = {"host": "a", "hypervisor_hostname": "a", "updated_at": NOW, "created_at": NOW}
    usage = {"vcpus": 8, "vcpus_used": 1, "memory_mb": 8192, "free_ram_mb": 7680}
    disk = {"local_gb": 100, "free_disk_gb": 99, "stats": '{"num_instances": "1"}'}
    service = {"host": "a", "binary": "nova-compute", "topic": "compute", "last_seen_up": NOW}
    rows = {
        "compute_nodes": [
            {**node, **usage, **disk, "id": 1, "uuid": "1"},
            {**node, **usage, **disk, "id": 2, "uuid": "2", "host": "b"},
        ],
        "services": [service, {**service, "host": "b", "last_seen_up": "2026-11-20T23:00:00Z"}],
        "instances": [
            {"uuid": uuid, "host": "a", "node": "a", "vm_state": "active"} for uuid in UUIDS[:2]
        ],
    }
    fleet = VirtualFleet(a_conf(), RowFleet(rows), VirtualClock(seconds(moment(NOW))))
    before = numbers(fleet)
    adopted = fleet.adopt(UUIDS[0], a_request())
    other = fleet.adopt(UUIDS[1], a_request())
    assert numbers(fleet) == before
    assert fleet.servers_on("a") == [adopted, other]
    with fleet.reservations.without([adopted]):
        assert numbers(fleet)["free_ram_mb"] == [8192, 7680]
    assert numbers(fleet) == before
    fleet.remove([adopted])
    assert numbers(fleet)["free_ram_mb"] == [8192, 7680]
    assert hosts_of(fleet) == {UUIDS[1]: "a"}
    assert {each.key[0] for each in fleet.place(a_request(), UUIDS[:5]).servers} == {"a"}
