"""Machines of their own for schedulers, and the cables from there to broker and database."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from typing import Final, Self

from tests.faults.world import ANSWERS_MEANWHILE, PAUSE_SECONDS, World
from tests.servers import programs
from tests.waiting import wait_until
from tests.world.proxy import Proxy

CUT_SECONDS: Final = 2 * PAUSE_SECONDS
BROKER, DATABASE = "broker", "database"
#: A network card that does not exist.
NOBODY: Final = "02:00:00:00:00:00"


class Cable:
    """A network of two ends; what is sent while it is cut is lost, and nobody is told."""

    def __init__(self, number: int, inside_pid: int) -> None:
        # Reserved for measuring networks, so that nothing real has these addresses.
        self._network = f"198.18.{number}"
        self.address = f"{self._network}.1"
        self._ends = (f"nst{number}o", f"nst{number}i")
        self._enter = _entering(inside_pid)
        outer, inner = self._ends
        peer = ["peer", "name", inner, "netns", str(inside_pid)]
        _run(["ip", "link", "add", outer, "type", "veth", *peer])
        for own, (device, enter) in enumerate(self._sides(), 1):
            _run([*enter, "ip", "address", "add", f"{self._network}.{own}/30", "dev", device])
            _run([*enter, "ip", "link", "set", device, "up"])

    def _sides(self) -> list[tuple[str, list[str]]]:
        return [(self._ends[0], []), (self._ends[1], self._enter)]

    def cut(self) -> None:
        for other, (device, enter) in zip((2, 1), self._sides(), strict=True):
            to = [f"{self._network}.{other}", "dev", device]
            _run([*enter, "ip", "neighbour", "replace", *to, "lladdr", NOBODY, "nud", "permanent"])

    def mend(self) -> None:
        for other, (device, enter) in zip((2, 1), self._sides(), strict=True):
            _run([*enter, "ip", "neighbour", "del", f"{self._network}.{other}", "dev", device])

    def remove(self) -> None:
        _run(["ip", "link", "delete", self._ends[0]])


class Machine:
    """A network namespace with one cable to the broker and one to the database."""

    def __init__(self, number: int, world: World) -> None:
        self._world = world
        self._ending = contextlib.ExitStack()
        # It is there for as long as a process in it is.
        holding = ["unshare", "--net", "sleep", "infinity"]
        self._holder = subprocess.Popen(holding, stdin=subprocess.DEVNULL)
        self._ending.callback(self._holder.wait)
        self._ending.callback(self._holder.kill)
        self.run_by = _entering(self._holder.pid)
        self._numbers = dict(zip((BROKER, DATABASE), _networks(number), strict=True))
        self.cables: dict[str, Cable] = {}
        self.options: dict[str, dict[str, str]] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as failing:
            failing.enter_context(self._ending)
            ours, theirs = "/proc/self/ns/net", f"/proc/{self._holder.pid}/ns/net"
            wait_until(lambda: not os.path.samefile(ours, theirs), describe="a network")
            ports = {}
            for name, port in self._ports().items():
                cable = self.cables[name] = Cable(self._numbers[name], self._holder.pid)
                self._ending.callback(cable.remove)
                ports[name] = self._ending.enter_context(Proxy(port, cable.address)).port
            self._configure(ports)
            self._ending = failing.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ending.close()

    def _ports(self) -> dict[str, int]:
        return {BROKER: self._world.rabbitmq.port, DATABASE: self._world.mariadb.port}

    def _configure(self, ports: dict[str, int]) -> None:
        urls = {BROKER: self._world.rabbitmq.url(), DATABASE: self._world.database_url}
        for name, port in self._ports().items():
            there = f"{self.cables[name].address}:{ports[name]}/"
            urls[name] = urls[name].replace(f"127.0.0.1:{port}/", there)
        self.options = {
            "DEFAULT": {"transport_url": urls[BROKER]},
            "database": {"connection": urls[DATABASE]},
        }


def cut_from_broker(world: World) -> None:
    """One scheduler's requests are lost on the way; the other's are not."""
    _cut_for_a_while(world, [BROKER, None])


def cut_from_both(world: World) -> None:
    """One scheduler has no broker, the other has no database."""
    _cut_for_a_while(world, [BROKER, DATABASE])


def cut_for_good(world: World) -> None:
    """A scheduler dies behind a cut cable: the database never hears of it."""
    machine = Machine(0, world)
    with machine, world.changed(0, options=machine.options, run_by=machine.run_by) as daemon:
        world.load.wait_for_answers(ANSWERS_MEANWHILE)
        machine.cables[DATABASE].cut()
        daemon.kill()
        world.mended()


def _cut_for_a_while(world: World, several: list[str | None]) -> None:
    with _machines(world) as machines:
        cables = [e.cables[name] for e, name in zip(machines, several, strict=True) if name]
        for each in cables:
            each.cut()
        time.sleep(CUT_SECONDS)
        for each in cables:
            each.mend()
        world.mended()


@contextlib.contextmanager
def _machines(world: World) -> Iterator[list[Machine]]:
    """Both schedulers on machines of their own."""
    with contextlib.ExitStack() as ending:
        machines = []
        for number in range(len(world.schedulers)):
            machine = ending.enter_context(Machine(number, world))
            machines.append(machine)
            ending.enter_context(
                world.changed(number, options=machine.options, run_by=machine.run_by)
            )
        yield machines


def _networks(number: int) -> tuple[int, int]:
    first = os.getpid() % 60 * 4 + number * 2
    return first, first + 1


def _entering(pid: int) -> list[str]:
    return [str(programs.find(programs.NSENTER)), f"--net=/proc/{pid}/ns/net"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
