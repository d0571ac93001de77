"""The steps of the page "Replace nova-scheduler in a running cloud", in a running cloud."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests import console, pages
from tests.nova.cloud.compute_api import host_of
from tests.nova.cloud.whole import HOSTS, NOVAS, OURS, Cloud
from tests.servers.fixtures import made
from tests.servers.loopback_http import LoopbackServer, QuietHandler
from tests.servers.venvs import PLACEMENT
from tests.waiting import wait_until

PAGE = pages.ROOT / "docs" / "replace-nova-scheduler.md"
FILE, PORT = "/etc/nova/nova.conf", "9642"
UNITS = {"nova-scheduler": NOVAS, "nova-scheduler-standalone": OURS}
SECONDS = 300
BOOTS = 4


class _Systemctl(QuietHandler):
    def answer(self):
        action, now, unit = self.body().decode().split()
        assert now == "--now"
        program = self.server.owner.cloud.programs[UNITS[unit]]
        {"enable": program.start, "disable": program.stop}[action]()
        self.send(204)


class Systemctl(LoopbackServer):
    """Starts and stops schedulers of *cloud* for the program ``systemctl`` in *folder*."""

    def __init__(self, cloud, folder):
        self.cloud = cloud
        super().__init__(_Systemctl)
        program = folder / "systemctl"
        program.write_text(f'#!/bin/sh\nexec curl -sSf --data "$*" {self.endpoint}/\n')
        program.chmod(0o755)


@pytest.fixture
def cloud(nova_python, tmp_path):
    with Cloud(tmp_path, nova_python, made(PLACEMENT), NOVAS) as cloud:
        cloud.api.create_flavor("small", 512, 1)
        yield cloud


def follow(part, cloud, folder, server=""):
    """Run the commands of a part of the page; each prints what the page shows."""
    shown = console.commands(PAGE, part)
    assert shown
    here = {FILE: str(cloud.config), f":{PORT}/": f":{cloud.status_port}/"}
    used = []
    for command in shown:
        text = command.text
        for there, replaced in here.items():
            text = text.replace(there, replaced)
        used.append(console.Command(text, command.printed))
    environment = pages.environment()
    environment |= {"PATH": f"{folder}:{environment['PATH']}", "COLUMNS": "110", "SERVER": server}
    printed = console.run(used, folder, environment, SECONDS)
    for command, text in zip(shown, printed, strict=True):
        assert console.agree(command.printed, text), f"{command.text}\nprints:\n{text}"


def boot(cloud, name):
    (server,) = cloud.api.boot(name, "small")
    assert (server["status"], host_of(server) in HOSTS) == ("ACTIVE", True)
    return str(server["id"])


def wait_for_queue(cloud, *counts):
    """Wait until the topic has these numbers of waiting requests and of schedulers."""

    def are_there():
        with cloud.rabbitmq.connect() as bus:
            queue = bus.channel().queue_declare("scheduler", passive=True)
            return (queue.message_count, queue.consumer_count) == counts

    wait_until(are_there, SECONDS, f"{counts} requests and schedulers")


def is_explained(cloud, server):
    """Whether ours has decided on it."""
    try:
        return bool(cloud.manage("explain", server))
    except RuntimeError:
        return False


def test_boots_while_no_scheduler_runs_and_while_both_do(cloud):
    nova, ours = cloud.programs[NOVAS], cloud.programs[OURS]
    nova.stop()
    with ThreadPoolExecutor(1) as pool:
        booting = pool.submit(boot, cloud, "with-none")
        wait_for_queue(cloud, 1, 0)
        ours.start()
        assert is_explained(cloud, booting.result())
    nova.start()
    wait_for_queue(cloud, 0, 2)
    servers = [boot(cloud, f"with-both-{number}") for number in range(BOOTS)]
    assert 0 < sum(is_explained(cloud, each) for each in servers) < BOOTS
    ours.stop()
    boot(cloud, "with-novas-again")
    cloud.api.delete_all()


def test_a_cloud_is_switched_and_switched_back(cloud, tmp_path):
    with Systemctl(cloud, tmp_path):
        boot(cloud, "with-novas")
        follow("before", cloud, tmp_path)
        follow("switch", cloud, tmp_path)
        follow("after", cloud, tmp_path, boot(cloud, "with-ours"))
        follow("back", cloud, tmp_path)
        boot(cloud, "with-novas-again")
    cloud.api.delete_all()
