"""Servers that change their host, on a real broker, told from the command line."""

import json

import pytest

from conductor_stub.compute import profiles
from scheduler.concurrency import THREADING
from scheduler.db import compute_nodes
from scheduler.db.database import Database
from scheduler.objects import NUMATopology
from scheduler.pci.devices import Pools
from tests.world import usage
from tests.world.booting import boot
from tests.world.deployment import CommandFailed

HOSTS = 6  # one of them has devices
PROFILE = str(profiles.DEFAULT_FILE.with_name("numa_pci.yaml"))
GPU = {"name": "gpu", "vendor_id": "10de", "product_id": "1db4"}
WAIT = ("--wait", "--timeout", "60")
SETTINGS = {
    "DEFAULT": {"reserved_host_memory_mb": 0},
    "filter_scheduler": {"enabled_filters": "RamFilter,NUMATopologyFilter,PciPassthroughFilter"},
    "pci": {"alias": json.dumps(GPU)},
}


@pytest.fixture(params=[None, "newton"], ids=["today", "computes of Newton"])
def cloud(request, on_sqlite):
    """Three hosts that speak an old version or today's."""
    caps = {"upgrade_levels": {"compute": request.param}} if request.param else {}
    with on_sqlite(backend=THREADING, settings={**SETTINGS, **caps}) as made:
        yield made.start(HOSTS, "--build-seconds", "0", "--profile", PROFILE)


def move(cloud, *words):
    (row,) = cloud.rows("nova-conductor-stub", *words, *WAIT)
    return dict(row)


def test_a_server_is_migrated_and_resized_and_stays_where_no_other_host_has_room(cloud):
    def shown():
        return json.loads(cloud.command("nova-conductor-stub", "show", "traveller", "-f", "json"))

    (server,) = boot(cloud, "m1.tiny", "traveller")
    migrated = move(cloud, "migrate", "traveller")
    resized = move(cloud, "resize", "traveller", "--flavor", "m1.small")

    assert (migrated["state"], migrated["flavor"]) == ("ACTIVE", "m1.tiny")
    assert (resized["state"], resized["flavor"]) == ("ACTIVE", "m1.small")
    assert server["host"] != migrated["host"] != resized["host"]
    found = shown()
    assert (found["memory_mb"], found["host"]) == (2048, resized["host"])

    zone_of = {row["host"]: row["zone"] for row in cloud.manage("host", "list")}
    cloud.manage("aggregate", "remove-host", zone_of[resized["host"]], resized["host"])
    cloud.manage("aggregate", "create", "far", "--zone", "elsewhere")
    cloud.manage("aggregate", "add-host", "far", resized["host"])
    (listed,) = cloud.rows("nova-conductor-stub", "list")
    assert (listed["host"], listed["zone"]) == (resized["host"], "elsewhere")

    cloud.command("nova-scheduler-manage", "flavor", "create", "huge", "--ram", "99999999")
    with pytest.raises(CommandFailed, match="No valid host found for resize"):
        move(cloud, "resize", "traveller", "--flavor", "huge")
    found = shown()
    assert (found["state"], found["host"]) == ("ACTIVE", resized["host"])
    assert "not enough hosts" in found["fault"]
    assert usage.settled(cloud.database_url)


def test_a_resize_brings_the_cells_and_devices_of_the_new_flavor(cloud):
    wanted = ("--property", "hw:cpu_policy=dedicated", "--property", "pci_passthrough:alias=gpu:2")
    cloud.command("nova-scheduler-manage", "flavor", "create", "pinned", *wanted)
    boot(cloud, "m1.tiny", "traveller")

    resized = move(cloud, "resize", "traveller", "--flavor", "pinned")
    with Database(cloud.database_url).read() as conn:
        (node,) = compute_nodes.list_all(conn, resized["host"])
    assert [each.count for each in Pools.from_text(node.pci_stats).pools] == [8]
    assert NUMATopology.from_text(node.numa_topology).cells[0].pinned_cpus == {0}

    back = move(cloud, "resize", "traveller", "--flavor", "m1.tiny")
    assert back["host"] != resized["host"]
