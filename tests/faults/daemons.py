"""What happens to schedulers, and what they meet when they start."""

import os
import select
import signal
import time

import psutil
import pytest

from scheduler import errors
from tests.faults import bad_filter
from tests.faults.world import HOSTS, PAUSE_SECONDS, World
from tests.waiting import wait_until
from tests.world.clock import Clock
from tests.world.disks import SmallDisk

LOG_DISK_KIB = 256
ANSWERS = 20
HANG_UPS = 500


def killed(world: World) -> None:
    world.schedulers[0].kill()
    world.start_again(0)


def stopped(world: World) -> None:
    assert world.schedulers[0].terminate() == 0
    world.start_again(0)


def paused(world: World) -> None:
    world.schedulers[0].signal(signal.SIGSTOP)
    time.sleep(PAUSE_SECONDS)
    world.schedulers[0].signal(signal.SIGCONT)


def worker_paused(world: World, seconds: float) -> None:
    """One worker of one scheduler does nothing; the other workers answer in its place."""
    worker = psutil.Process(world.schedulers[0].pid).children()[0]
    worker.suspend()
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        world.load.wait_for_answers(ANSWERS)
    worker.resume()


def broker_away_at_start(world: World) -> None:
    world.schedulers[1].terminate()
    world.rabbitmq.stop()
    world.schedulers[1] = world.begin(1)
    time.sleep(PAUSE_SECONDS)
    world.rabbitmq.start()
    world.schedulers[1].wait_ready()


def database_away_at_start(world: World) -> None:
    world.schedulers[1].terminate()
    world.mariadb.stop()
    world.schedulers[1] = world.begin(1)
    time.sleep(PAUSE_SECONDS)
    world.mariadb.start()
    world.schedulers[1].wait_ready()


def reloaded_with_a_broken_file(world: World) -> None:
    """SIGHUP finds a filter that does not exist, then a file that is none."""
    daemon, site = world.schedulers[0], world.sites[0]
    whole = site.config_path.read_text(encoding="utf-8")
    broken = (whole.replace("RamFilter", "NoSuchFilter"), "half a line and no more")
    told = "The configuration stays as it was"
    for number, text in enumerate(broken, 1):
        site.config_path.write_text(text, encoding="utf-8")
        daemon.signal(signal.SIGHUP)
        wait_until(lambda times=number: daemon.log.count(told) >= times, describe=told)
        world.load.wait_for_answers(ANSWERS)
    site.config_path.write_text(whole, encoding="utf-8")
    daemon.signal(signal.SIGHUP)
    daemon.wait_log("The configuration was read again")


def reloaded_all_the_time(world: World) -> None:
    """A hundred SIGHUPs a second; the master and its workers stay the same."""
    daemon = world.schedulers[0]
    starts = daemon.log.count("Starting scheduler node")
    for _signal in range(HANG_UPS):
        daemon.signal(signal.SIGHUP)
        time.sleep(0.01)
    world.load.wait_for_answers(ANSWERS)
    assert daemon.log.count("Starting scheduler node") == starts


def log_disk_full(world: World) -> None:
    """The disk of a scheduler's log is full for a while, and then is not."""
    with SmallDisk(world.folder / "log", LOG_DISK_KIB) as disk:
        log = disk.folder / "scheduler.log"
        options = {"log_file": str(log), "debug": True}
        with world.changed(1, options={"DEFAULT": options}):
            wait_until(log.exists, describe="a log")
            disk.fill()
            time.sleep(PAUSE_SECONDS)
            written = log.stat().st_size
            disk.empty()
            world.mended()
            wait_until(lambda: log.stat().st_size > written, describe="lines after the fault")


def log_read_by_nobody(world: World) -> None:
    """Standard error is a pipe, which is full soon."""
    pipe = world.folder / "pipe"
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDWR), "rb") as end:
        run_by = ("sh", "-c", f'exec "$0" "$@" 2>"{pipe}"')
        with world.changed(1, options={"DEFAULT": {"debug": True}}, run_by=run_by):
            # Pages, not bytes: a line that does not fit into the last page begins another.
            wait_until(lambda: not select.select([], [end], [], 0)[1], describe="a full pipe")
            world.mended()


def descriptors_closed(world: World) -> None:
    """A scheduler starts with neither standard input, output nor error."""
    with world.changed(1, run_by=("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-')):
        world.mended()


def clock_jumps(world: World, seconds: float) -> None:
    """The clock of one scheduler's machine jumps, stays wrong for a while, and jumps back.

    Further than a service may be silent and a promise stands; what hosts report is seen, too.
    """
    clock = Clock(world.folder / "clock")
    options = {
        "DEFAULT": {"service_down_time": 300},
        "claims": {"expiry_seconds": 600},
        # Under libfaketime Python cannot sleep, as the parent of several workers does.
        "scheduler": {"workers": 1},
    }
    with world.heartbeats(), world.changed(1, options=options, environment=clock.environment):
        world.load.wait_for_answers(ANSWERS)
        clock.jump(seconds)
        time.sleep(PAUSE_SECONDS)
        with world.only_room_on(HOSTS[0]):
            since = time.monotonic()
            world.load.wait_for_answers(ANSWERS)
            assert {each.host for each in world.load.served_since(since)} == {HOSTS[0]}
        clock.jump(0)
        world.mended()


def filter_broken(world: World) -> None:
    """A filter raises, hangs and returns nonsense, for the requests that ask for it."""
    for fault in (bad_filter.RAISES, bad_filter.HANGS, bad_filter.NONSENSE) * 3:
        if fault == bad_filter.RAISES:
            with pytest.raises(errors.NovaException, match="Internal fault"):
                world.ask({bad_filter.HINT: [fault]})
        else:
            world.ask({bad_filter.HINT: [fault]})
