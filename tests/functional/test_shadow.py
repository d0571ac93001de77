"""A shadow beside a scheduler: it decides the same, claims nothing and answers nobody."""

import json
import os
import re
import signal
from collections import Counter
from contextlib import contextmanager

import oslo_messaging
import pytest
from oslo_config import cfg

from scheduler.rpc import transport as rpc_transport
from scheduler.rpc.connection import MOST_COPIES
from scheduler.rpc.dispatcher import BaseAPI
from tests.waiting import wait_until
from tests.world import databases, fleet
from tests.world.booting import boot
from tests.world.calling import a_request, crowd
from tests.world.connection import RawCaller

HOSTS = 6
INVENTORY = {"VCPU": 64, "MEMORY_MB": 65536, "DISK_GB": 1000}
QUEUE = "scheduler.controller-shadow"
#: Bytes of a request; as many as there are fill every buffer between broker and shadow.
LARGE = 40_000


class OtherScheduler:
    """A scheduler of somebody else: it keeps whom it was asked for."""

    target = oslo_messaging.Target(version="4.5")

    def __init__(self):
        self.asked = []

    @oslo_messaging.expose
    def select_destinations(self, _context, instance_uuids, **_args):
        self.asked += instance_uuids
        return []


@contextmanager
def answering(transport_url):
    """A server of the RPC library on the topic, as Nova has it."""
    scheduler = OtherScheduler()
    rpc_transport.set_defaults()  # else other tests would have the options without their defaults
    bus = oslo_messaging.get_rpc_transport(cfg.CONF, url=transport_url)
    server = oslo_messaging.get_rpc_server(
        bus,
        oslo_messaging.Target(exchange="nova", topic="scheduler", server="nova"),
        [scheduler, BaseAPI("scheduler")],
        executor="threading",
        access_policy=oslo_messaging.ExplicitRPCAccessPolicy,
    )
    server.start()
    try:
        yield scheduler
    finally:
        server.stop()
        server.wait()
        bus.cleanup()


class Site:
    """A fleet, the virtual host of its bus, and the configuration of its shadow."""

    def __init__(self, rabbitmq, deployment, sqlite_url):
        self._rabbitmq, self._vhost = rabbitmq, rabbitmq.create_vhost()
        self.url = rabbitmq.url(self._vhost)
        settings = {"DEFAULT": {"service_down_time": 3600}}  # nothing sends heartbeats
        self.cloud = deployment(self.url, sqlite_url, settings=settings)
        fleet.install(sqlite_url)

    def queues(self):
        """Messages that wait in each queue of the shadow."""
        columns = ("list_queues", "-p", self._vhost, "name", "messages_ready")
        listed = json.loads(self._rabbitmq.control("--formatter", "json", *columns))
        found = {each["name"]: each["messages_ready"] for each in listed}
        return {name: ready for name, ready in found.items() if name.startswith(QUEUE)}

    def copies(self):
        done = self.cloud.run("nova-scheduler-manage", "shadow", "report", "-f", "json")
        waiting = re.search(r"(\d+) requests have no outcome", done.stderr)
        if "No worker of" in done.stderr:  # it is too busy to answer
            return 0
        assert waiting, done
        return sum(each["requests"] for each in json.loads(done.stdout)) + int(waiting[1])


@pytest.fixture
def site(rabbitmq, deployment, sqlite_url):
    return Site(rabbitmq, deployment, sqlite_url)


def test_whatever_becomes_of_a_shadow_each_call_is_answered_once(site):
    with answering(site.url) as scheduler, crowd(site.url, 2) as callers:
        for number in (signal.SIGTERM, signal.SIGKILL):
            shadow = site.cloud.start_scheduler("--shadow").wait_ready()
            wait_until(lambda: site.copies() > 0, 60, "copies")
            callers.wait_for_more_calls()
            os.killpg(shadow.pid, number)
            shadow.wait()
            callers.wait_for_more_calls()
            wait_until(lambda: not site.queues(), 60, lambda: str(site.queues()))
        callers.finish()
        assert set(Counter(scheduler.asked).values()) == {1}


def test_no_more_wait_for_a_shadow_that_hangs_than_the_limit(site):
    sent = MOST_COPIES + 600
    with answering(site.url) as scheduler, RawCaller(site.url) as raw:
        shadow = site.cloud.start_scheduler("--shadow").wait_ready()
        raw.call(a_request())
        # A queue that nobody has consumed from yet does not end with a process that is killed.
        wait_until(lambda: site.copies() == 1, 60, "a copy")
        os.killpg(shadow.pid, signal.SIGSTOP)
        scheduler.asked.clear()
        request = a_request()
        request["args"]["padding"] = " " * LARGE
        for _ in range(sent):
            raw.send(request)
        wait_until(lambda: len(scheduler.asked) == sent, 90, lambda: str(len(scheduler.asked)))
        assert site.queues()[QUEUE] == MOST_COPIES
        assert raw.call(a_request())["failure"] is None
        shadow.kill()
        wait_until(lambda: not site.queues(), 60, lambda: str(site.queues()))


def results(cloud):
    """Requests by result, as the command prints them."""
    return {row["result"]: row["requests"] for row in cloud.manage("shadow", "report")}


def differences(cloud):
    return cloud.manage("shadow", "report", "--differences")


@pytest.mark.parametrize("claims", ["none", "placement"])
def test_a_shadow_agrees_with_the_scheduler_beside_it(
    claims, deployment, transport_url, mariadb_url, request
):
    settings = {"scheduler": {"claims": claims}}
    if claims == "placement":
        placement = request.getfixturevalue("placement_server")
        settings["placement"] = placement.settings
    cloud = deployment(transport_url, mariadb_url, settings=settings)
    cloud.start(HOSTS, "--build-seconds", "0")
    if claims == "placement":
        for node in databases.nodes(mariadb_url).values():
            placement.add_node(node, INVENTORY, ["OWNER_NOVA"])
    shadow = cloud.start_scheduler("--shadow").wait_ready()
    servers = [each for _ in range(3) for each in boot(cloud, "m1.tiny", "--count", "2")]
    assert {each["state"] for each in servers} == {"ACTIVE"}
    wait_until(lambda: sum(results(cloud).values()) >= 3, 60, lambda: str(results(cloud)))
    found = results(cloud)
    assert found["other"] == found["outcome unknown"] == 0, differences(cloud)
    said = cloud.command("nova-scheduler-manage", "shadow", "report", "--differences")
    assert said == "No request differs.\n"
    assert [found["agreed"], shadow.terminate()] == [3, 0], differences(cloud)
