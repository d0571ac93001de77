"""Operators ask each of a daemon's workers over a real broker."""

import json
import os
import signal
from dataclasses import dataclass
from uuid import uuid4

import pytest

from tests.servers.rabbitmq import RabbitMQ
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import a_context, scheduler_api
from tests.world.calling import a_request
from tests.world.connection import RawCaller
from tests.world.deployment import Deployment
from tests.world.process import BACKENDS

WORKERS = 2
ONE_BACKEND = pytest.mark.parametrize("served", [BACKENDS[0]], indirect=True)


@dataclass(frozen=True)
class Served:
    """A daemon of two workers on three hosts, and the names of the queues on its bus."""

    deployment: Deployment
    rabbitmq: RabbitMQ
    vhost: str
    has_quorum: bool

    def queues(self, *columns):
        """The queues on the bus now, with the *columns* wanted of each."""
        listed = self.rabbitmq.control(
            "-q", "list_queues", "-p", self.vhost, "name", *columns, "--no-table-headers"
        )
        return set(listed.splitlines())

    def run(self, *words):
        """Run ``nova-scheduler-manage`` to whatever end it takes."""
        return self.deployment.run("nova-scheduler-manage", *words)

    def select(self, *uuids):
        """Ask any worker for hosts, as a conductor does; their names."""
        folder, url = self.deployment.folder, self.rabbitmq.url(self.vhost)
        with scheduler_api(
            folder, url, rabbit={"rabbit_quorum_queue": self.has_quorum}
        ) as scheduler:
            chosen = scheduler.select_destinations(a_context(), fleet.a_spec(uuids[0]), uuids, True)
        return [selections[0].service_host for selections in chosen]

    def workers(self, host="sched1", timeout_seconds=30):
        """Process ids by the numbers of the workers that answer in time."""
        words = ("state", "show", "--daemon", host, "--timeout", str(timeout_seconds), "-f", "json")
        return {row["worker"]: row["pid"] for row in json.loads(self.run(*words).stdout or "[]")}


@pytest.fixture(scope="module", params=BACKENDS)
def served(request, on_sqlite, rabbitmq):
    has_quorum = request.param == BACKENDS[0]
    settings = {
        "DEFAULT": {"host": "sched1", "service_down_time": 3600},
        "scheduler": {"workers": WORKERS, "claims": "database"},
        "oslo_messaging_rabbit": {"rabbit_quorum_queue": has_quorum},
    }
    with on_sqlite(backend=request.param, settings=settings) as deployment:
        fleet.install(deployment.database_url)
        deployment.start_scheduler().wait_ready()
        vhost = deployment.transport_url.rpartition("/")[2]
        yield Served(deployment, rabbitmq, vhost, has_quorum)


def test_every_worker_answers_and_no_queue_is_left(served):
    before = served.queues()
    rows = served.deployment.manage("state", "show", "--daemon", "sched1")
    told = [(row["daemon"], row["worker"], row["hosts"]) for row in rows]
    assert told == [("sched1", number, len(fleet.HOSTS)) for number in (1, 2)]
    assert len({row["pid"] for row in rows}) == WORKERS
    # A queue may go a moment later than the connection that it went with.
    wait_until(lambda: served.queues() == before, describe=lambda: str(served.queues() - before))


@ONE_BACKEND
def test_a_worker_that_hangs_is_named_and_the_other_answers(served):
    pid = served.workers()[2]
    os.kill(pid, signal.SIGSTOP)
    try:
        done = served.run("state", "show", "--daemon", "sched1", "--timeout", "3", "-f", "json")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (done.returncode, [row["worker"] for row in json.loads(done.stdout)]) == (0, [1])
    assert "worker 2 of nova-scheduler on sched1 did not answer within 3 s" in done.stderr


MISTAKES = {
    "state show --daemon elsewhere": "nova-scheduler on elsewhere does not listen",
    "explain req-nobody-sent --daemon sched1": "req-nobody-sent",
    "what-if --flavor m1.tiny --enable RamFiltr": "--enable RamFiltr: no filter of this name is "
    "available; did you mean RamFilter?",
}


@ONE_BACKEND
@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_named_at_once(served, words):
    done = served.run(*words.split())
    assert done.returncode == 1
    assert MISTAKES[words] in done.stderr.splitlines()[-1]


@ONE_BACKEND
def test_queues_end_with_their_workers(served, sqlite_url):
    # On a database of its own, so that nobody who asks all daemons waits for the killed worker.
    fleet.install(sqlite_url)
    elsewhere = {"OS_DEFAULT__HOST": "sched2", "OS_DATABASE__CONNECTION": sqlite_url}
    daemon = served.deployment.start_scheduler(extra_environment=elsewhere).wait_ready()
    pid = served.workers("sched2")[1]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: served.workers("sched2", 2).get(1, pid) != pid, 60)
    mine = queues_of(served, "sched2")
    assert len(mine) == WORKERS
    assert all("x-expires" in line for line in mine)
    assert daemon.terminate() == 0
    wait_until(lambda: not queues_of(served, "sched2"), describe="the end of all")


def queues_of(served, host):
    """The queues of a daemon's workers, with their arguments."""
    return [line for line in served.queues("arguments") if f"_worker.{host}." in line]


@ONE_BACKEND
def test_each_worker_reads_everything_again_and_shows_it(served):
    deployment = served.deployment
    served.select("u-shown")
    assert deployment.manage("state", "refresh") == []
    said = deployment.command("nova-scheduler-manage", "state", "refresh")
    assert said.startswith("Nothing had been missed: 2 worker(s) read ")
    # With everything read, both workers know the same: the claim is everybody's.
    (reserved,) = {row["reserved"] for row in deployment.manage("state", "show")}
    assert reserved > 0


@ONE_BACKEND
def test_decisions_are_explained_by_the_worker_that_took_them(served):
    # A check in place takes nothing, so that other tests find what they have placed.
    placed, refused = a_request(_nova_check_type=["rebuild"]), a_request()
    flavor = refused["args"]["spec_obj"]["nova_object.data"]["flavor"]["nova_object.data"]
    flavor["memory_mb"] = 2 * fleet.MEMORY_MB
    with RawCaller(served.rabbitmq.url(served.vhost)) as raw:
        chosen = raw.call(placed)["result"][0][0]["nova_object.data"]["service_host"]
        assert raw.call(refused)["failure"]
    first_lines = []
    for request in (placed, refused):
        [name] = request["args"]["instance_uuids"]
        done = served.run("explain", name, "--daemon", "sched1", "--host", "cmp3")
        assert (done.returncode, "cmp3" in done.stdout) == (0, True), done.stderr
        first_lines.append(done.stdout.splitlines()[0])
    assert f"{chosen} was chosen: " in first_lines[0]
    assert "No host fits: RamFilter removed " in first_lines[1]
    assert f"{2 * fleet.MEMORY_MB} MiB of memory wanted" in first_lines[1]
    done = served.run("explain", name, "--daemon", "sched1", "--json")
    assert [told["outcome"] for told in json.loads(done.stdout)] == ["no_host_fits"]


@ONE_BACKEND
def test_a_request_is_tried_out_and_nothing_stays(served, tmp_path):
    deployment = served.deployment
    uuid = str(uuid4())
    (booked,) = served.select(uuid)
    deployment.manage("state", "refresh")
    before = numbers(deployment)
    done = served.run("what-if", uuid, "--without-host", booked, "--json")
    answer = json.loads(done.stdout)
    chosen = [answer[when]["chosen"][0]["host"] for when in ("before", "after")]
    assert chosen[0] == booked != chosen[1]
    profile = tmp_path / "new.yaml"
    profile.write_text(f"like: {booked}\nname: new\ncount: 2\nvcpus: 99\nmemory_mb: 9000000\n")
    words = ["what-if", "--flavor", "m1.small", "--count", "2", "--add-hosts", str(profile)]
    shown = served.run(*words)
    assert shown.stdout.splitlines()[0].endswith("Then: new-1, new-2."), shown
    assert before == numbers(deployment)


def numbers(deployment):
    """All that each worker knows, but for its age."""
    return [{**row, "age_s": None} for row in deployment.manage("state", "show")]
