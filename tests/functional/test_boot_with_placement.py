"""Servers are booted, fail, are tried elsewhere and deleted; a real Placement keeps claims."""

import signal

import pytest

from scheduler.conf.filter_scheduler import DEFAULT_FILTERS, PLACEMENT_FILTERS
from tests.waiting import wait_until
from tests.world import databases, fleet
from tests.world.booting import WAIT, boot, delete, states

HOSTS = 8
INVENTORY = {"VCPU": 64, "MEMORY_MB": 65536, "DISK_GB": 1000}
SETTINGS = {
    "scheduler": {"claims": "placement", "workers": 2},
    "DEFAULT": {"reserved_host_memory_mb": 0},
}
NO_EFFECT = "[DEFAULT] scheduler_manager: it has no effect here"
#: By mode of claims whose filters are the default, these, and what a reload says of such an option.
CHAINS = {
    "none": ("Newton's", DEFAULT_FILTERS, "The configuration was read again"),
    "placement": ("today's Nova's", PLACEMENT_FILTERS, f"nova.conf:5: {NO_EFFECT}"),
}


def migrate(cloud, server):
    (row,) = cloud.rows("nova-conductor-stub", "migrate", server["id"], *WAIT)
    assert row["host"] != server["host"]
    server["host"] = row["host"]


@pytest.mark.parametrize(("claims", "said"), CHAINS.items(), ids=CHAINS)
def test_the_default_chain_is_logged_and_options_without_effect_stay_out(
    deployment, transport_url, sqlite_url, placement_server, claims, said
):
    whose, filters, after_reload = said
    settings = {"scheduler": {"claims": claims}, "placement": placement_server.settings}
    cloud = deployment(transport_url, sqlite_url, settings=settings)
    fleet.install(sqlite_url)
    scheduler = cloud.start_scheduler().wait_ready()
    assert scheduler.log.count(f"Filters, by default {whose}: {', '.join(filters)}\n") == 1
    (shown,) = cloud.manage("config", "show", "enabled_filters")
    assert shown["value"] == list(filters)

    cloud.configure({"DEFAULT": {"scheduler_manager": "my.Manager"}})
    scheduler.signal(signal.SIGHUP)
    wait_until(lambda: after_reload in scheduler.log, 60, lambda: str(scheduler.log))
    assert scheduler.terminate() == 0
    cloud.configure({"scheduler": {"accept_options_without_effect": True}})
    scheduler = cloud.start_scheduler().wait_ready()
    assert "[DEFAULT] scheduler_manager: it has no effect" in scheduler.log


def test_allocations_follow_the_servers(deployment, transport_url, mariadb_url, placement_server):
    settings = {**SETTINGS, "placement": placement_server.settings}
    cloud = deployment(transport_url, mariadb_url, settings=settings)
    cloud.start(HOSTS, "--build-seconds", "0", "--fail-rate", "0.4", "--seed", "5")
    node_of = databases.nodes(mariadb_url)
    for node in node_of.values():
        placement_server.add_node(node, INVENTORY, ["OWNER_NOVA"])

    servers = [each for _ in range(2) for each in boot(cloud, "m1.tiny", "--count", "4")]

    assert "ACTIVE" in states(servers)
    assert any(each["state"] == "ACTIVE" and each["attempts"] > 1 for each in servers)

    def wrong():
        return [
            each["id"]
            for each in servers
            if set(placement_server.allocations(each["id"]))
            != ({node_of[each["host"]]} if each["state"] == "ACTIVE" else set())
        ]

    wait_until(lambda: not wrong(), 60, lambda: str(wrong()))
    migrate(cloud, next(each for each in servers if each["state"] == "ACTIVE"))
    wait_until(lambda: not wrong(), 60, lambda: str(wrong()))
    delete(cloud, servers)

    def used():
        return {amount for n in node_of.values() for amount in placement_server.used(n).values()}

    wait_until(lambda: used() == {0}, 60, lambda: str(used()))
