"""A scheduler that is reloaded while others call it: no call is lost, and no answer is mixed.

``RELOADS=200 pytest tests/functional/test_reload.py`` does it more often.
"""

import os
import re
import signal
import time
from collections import Counter

import psutil
import pytest

from scheduler.concurrency import EVENTLET, THREADING
from tests.waiting import wait_until
from tests.world import databases, fleet
from tests.world.calling import a_request, crowd
from tests.world.connection import RawCaller

RELOADS = int(os.environ.get("RELOADS", "4"))
"""For each way in which the scheduler runs."""
CALLERS = 4
WAIT_SECONDS = 60
SIGNALS = 200

HOSTS = [f"cmp{number}" for number in range(1, 7)]
MEMORY_MB = {host: 10**9 + number * 10**8 for number, host in enumerate(HOSTS)}

#: Each of the two configurations differs from the other in all that an answer shows: chosen host,
#: number of alternates, most memory that may be in use on the host.
CONFIGURATIONS = {
    ("cmp6", 1, MEMORY_MB["cmp6"]): {
        "DEFAULT": {"ram_allocation_ratio": 1.0},
        "scheduler": {"max_attempts": 2},
        "filter_scheduler": {"ram_weight_multiplier": 1.0},
    },
    ("cmp1", 3, 2 * MEMORY_MB["cmp1"]): {
        "DEFAULT": {"ram_allocation_ratio": 2.0},
        "scheduler": {"max_attempts": 4},
        "filter_scheduler": {"ram_weight_multiplier": -1.0},
    },
}
RIGHT = tuple(CONFIGURATIONS)

SETTINGS = {
    "DEFAULT": {"service_down_time": 3600, "debug": False},
    "filter_scheduler": {
        "enabled_filters": "ComputeFilter,RamFilter",
        "weight_classes": "nova.scheduler.weights.ram.RAMWeigher",
    },
}
READ_AGAIN, REFUSED = "The configuration was read again", "The configuration stays as it was"


def seen_in(reply):
    """What a reply shows of the configuration that it was decided with."""
    [selections] = reply["result"]
    first = selections[0]["nova_object.data"]
    limits = first["limits"]["nova_object.data"]
    return first["service_host"], len(selections) - 1, limits["memory_mb"]


class Reloads:
    """One scheduler, and how often each of its workers has read its configuration again."""

    def __init__(self, cloud, workers):
        self.cloud = cloud
        self.workers = workers
        cloud.configure({**CONFIGURATIONS[RIGHT[0]], "filter_scheduler": self._policy(RIGHT[0])})
        self.scheduler = cloud.start_scheduler().wait_ready()

    def _policy(self, which):
        return {**SETTINGS["filter_scheduler"], **CONFIGURATIONS[which]["filter_scheduler"]}

    def times(self, text=READ_AGAIN):
        assert self.scheduler.is_announced  # and what else it told the service manager is read
        return self.scheduler.log.count(text)

    def to(self, settings, said=READ_AGAIN):
        """Change the file and reload; returns when it is *said* what came of it.

        Every worker says that it reads, and one that nothing changes.
        """
        expected = self.times(said) + (self.workers if said == READ_AGAIN else 1)
        self.cloud.configure(settings)
        self.scheduler.signal(signal.SIGHUP)
        wait_until(
            lambda: self.times(said) >= expected, WAIT_SECONDS, lambda: self.scheduler.log[-5000:]
        )

    def replace_a_worker(self):
        """Kill one; return when another one serves in its place."""
        serving = "Serving requests on topic"
        expected = self.times(serving) + 1
        psutil.Process(self.scheduler.pid).children()[0].kill()
        wait_until(
            lambda: self.times(serving) >= expected,
            WAIT_SECONDS,
            lambda: self.scheduler.log[-5000:],
        )


RESIZED = """
    UPDATE compute_nodes SET memory_mb = :size, free_ram_mb = :size, ram_allocation_ratio = 0
    WHERE host = :host
"""


@pytest.fixture(
    params=[(EVENTLET, 1), (EVENTLET, 2), (THREADING, 2)], ids=lambda each: f"{each[0]}-{each[1]}"
)
def reloads(request, deployment, transport_url, sqlite_url):
    """A scheduler at work on hosts of different sizes."""
    backend, workers = request.param
    settings = {**SETTINGS, "scheduler": {"workers": workers}}
    cloud = deployment(transport_url, sqlite_url, backend=backend, settings=settings)
    fleet.install(sqlite_url, HOSTS)
    for host, size in MEMORY_MB.items():
        databases.query(sqlite_url, RESIZED, size=size, host=host)
    return Reloads(cloud, workers)


@pytest.mark.functional
def test_every_answer_is_of_one_configuration(reloads, transport_url, record_property):
    answers = Counter()

    def wait_for_answers(wanted):
        expected = answers[wanted] + CALLERS
        wait_until(lambda: answers[wanted] >= expected, WAIT_SECONDS, "answers")

    with crowd(transport_url, CALLERS, lambda reply: answers.update([seen_in(reply)])) as callers:
        for number in range(RELOADS):
            wanted = RIGHT[(number + 1) % 2]
            reloads.to(CONFIGURATIONS[wanted])
            wait_for_answers(wanted)
        another = CONFIGURATIONS[RIGHT[(number + 2) % 2]]
        for mistake in ({"pci": {"alias": "{}"}}, {"scheduler": {"max_attempts": "many"}}):
            reloads.to({**another, **mistake}, REFUSED)
            wait_for_answers(wanted)
        callers.finish()

    assert set(answers) == set(RIGHT)
    record_property("reloads and answers", (RELOADS, answers.total()))
    log = reloads.scheduler.log
    assert re.search(
        r"stays as it was: \S+:\d+: \[scheduler] max_attempts: 'many' is not an int", log
    )
    assert "[pci] alias: {} has no name" in log
    # Once for each mistake, of which the second file has both, and without the name of its class.
    assert (log.count(REFUSED), log.count("ConfigurationError")) == (3, 0)
    assert "Traceback" not in log
    assert "A restart is needed" not in log
    assert log.count("Starting scheduler node") == reloads.workers
    if reloads.workers > 1:
        reloads.replace_a_worker()
        with RawCaller(transport_url) as raw:
            assert {seen_in(raw.call(a_request())) for _ in range(20)} == {wanted}
    assert reloads.scheduler.terminate() == 0


@pytest.mark.functional
def test_signals_that_come_quickly_end_nobody_and_the_last_one_counts(reloads, transport_url):
    for number in range(SIGNALS):
        if number == SIGNALS - 1:
            reloads.cloud.configure(CONFIGURATIONS[RIGHT[1]])
        reloads.scheduler.signal(signal.SIGHUP)
        time.sleep(0.01)  # a hundred per second
    answers = Counter()
    with RawCaller(transport_url) as raw:

        def is_all_of_the_last():
            answers.clear()
            answers.update(seen_in(raw.call(a_request())) for _ in range(10))
            return set(answers) == {RIGHT[1]}

        wait_until(is_all_of_the_last, WAIT_SECONDS, lambda: str(answers))
    log = reloads.scheduler.log
    assert "Traceback" not in log
    assert log.count("Starting scheduler node") == reloads.workers
    assert reloads.scheduler.terminate() == 0
