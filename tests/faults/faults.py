"""Each fault with its promise: what breaks, and how it is mended."""

from __future__ import annotations

import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from scheduler import errors
from scheduler.rpc.context import RequestContext
from tests.faults import bad_filter
from tests.faults.world import HOSTS, SILENCE_TIMEOUT_SECONDS, World
from tests.functional import fleet
from tests.functional.bus import RawCaller, enveloped, recorded

PAUSE_SECONDS: Final = 5.0
NOTHING_LOST: Final = "every request is answered, if need be when it is asked again"
AT_ONCE: Final = "nobody notices"


@dataclass(frozen=True)
class Fault:
    """*act* breaks something and mends it; *refusals* are errors that callers may get."""

    name: str
    promise: str
    act: Callable[[World], None]
    refusals: frozenset[str] = frozenset()
    #: Whether callers may have to ask again.
    asks_again: bool = True


def broker_restarted(world: World) -> None:
    world.rabbitmq.stop()
    world.rabbitmq.start()


def broker_paused(world: World) -> None:
    world.rabbitmq.pause()
    time.sleep(PAUSE_SECONDS)
    world.rabbitmq.resume()


def broker_killed(world: World) -> None:
    world.rabbitmq.kill()
    world.rabbitmq.start()


def connections_cut(world: World) -> None:
    world.rabbitmq.control("close_all_connections", "a test")


def scheduler_killed(world: World) -> None:
    world.schedulers[0].kill()
    world.start_again(0)


def scheduler_stopped(world: World) -> None:
    assert world.schedulers[0].terminate() == 0
    world.start_again(0)


def scheduler_paused(world: World) -> None:
    world.schedulers[0].signal(signal.SIGSTOP)
    time.sleep(PAUSE_SECONDS)
    world.schedulers[0].signal(signal.SIGCONT)


def database_restarted(world: World) -> None:
    world.mariadb.stop()
    world.mariadb.start()


def database_killed(world: World) -> None:
    world.mariadb.kill()
    world.mariadb.start()


def database_paused(world: World) -> None:
    world.mariadb.pause()
    time.sleep(PAUSE_SECONDS)
    world.mariadb.resume()


def database_slow(world: World) -> None:
    world.proxy.delay_seconds = 2.0
    time.sleep(PAUSE_SECONDS)
    world.proxy.delay_seconds = 0.0


def database_silent(world: World) -> None:
    """Nothing comes through any more, and nobody is told; as in a network that has parted."""
    world.proxy.is_silent = True
    time.sleep(PAUSE_SECONDS + SILENCE_TIMEOUT_SECONDS)
    world.proxy.is_silent = False


def database_cut(world: World) -> None:
    for _ in range(3):
        world.proxy.cut()
        time.sleep(1)


def database_read_only(world: World) -> None:
    world.query("SET GLOBAL read_only = 1")
    time.sleep(PAUSE_SECONDS)
    world.query("SET GLOBAL read_only = 0")


def rows_locked(world: World) -> None:
    """Somebody holds the generations of all hosts for a while."""
    with world.locked("SELECT * FROM claim_hosts FOR UPDATE"):
        time.sleep(PAUSE_SECONDS)


BAD_VALUES: Final = {
    "compute_nodes": (
        "stats = '{\"num_instances\": \"many\"', cpu_info = '[', memory_mb = 0",
        "free_disk_gb = NULL, metrics = 'x', supported_instances = '{}'",
        "numa_topology = '{\"nova_object.name\": 1}', pci_stats = '[[', vcpus = -5",
        "free_ram_mb = 2147483647, local_gb = -1, disk_available_least = NULL",
    ),
    "services": ("last_seen_up = NULL, created_at = NULL",),
}


def rows_half_written(world: World) -> None:
    """One host's rows say nonsense; the other hosts go on."""
    victim = HOSTS[0]
    for table, several in BAD_VALUES.items():
        (saved,) = world.query(f"SELECT * FROM {table} WHERE host = :host", host=victim)
        restored = ", ".join(f"`{name}` = :{name}" for name in saved if name != "updated_at")
        for assignment in (*several, restored):
            statement = f"UPDATE {table} SET {assignment}, updated_at = UTC_TIMESTAMP()"
            world.query(f"{statement} WHERE id = :id", **saved)
            time.sleep(0.5)


def hosts_come_and_go(world: World) -> None:
    """A burst of hosts that register and vanish, some of them without a trace."""
    for number in range(10):
        world.add_host(f"passing{number}")
        if number % 2:
            world.query("DELETE FROM compute_nodes WHERE host = :host", host=f"passing{number}")
    for table in ("compute_nodes", "services"):
        gone = f"UPDATE {table} SET deleted = id, deleted_at = UTC_TIMESTAMP()"
        world.query(f"{gone} WHERE host LIKE 'passing%'")


def callers_gone(world: World) -> None:
    """Callers that are not there any more when they are answered."""
    for _ in range(10):
        with RawCaller(world.rabbitmq.url()) as caller:
            for _ in range(4):
                caller.send(a_message())


def replies_nowhere(world: World) -> None:
    """The queues for the answers are deleted while the requests are on the way."""
    with RawCaller(world.rabbitmq.url()) as caller:
        for _ in range(10):
            keys = {**caller.call_keys(), "_reply_q": "reply_nobody"}
            caller.publish(enveloped({**a_message(), **keys}))


def delivered_twice(world: World) -> None:
    """The same request comes again: same answer, one claim."""
    with RawCaller(world.rabbitmq.url()) as caller:
        for _ in range(10):
            message = a_message()
            replies = [caller.call(message)["result"] for _ in range(2)]
            (own,) = message["args"]["instance_uuids"]
            hosts = {each[0][0]["nova_object.data"]["service_host"] for each in replies}
            assert hosts == {world.claims()[own]}


def poison(world: World) -> None:
    """Bodies that nobody can read."""
    with RawCaller(world.rabbitmq.url()) as caller:
        for body in POISON:
            caller.publish(body)


POISON: Final = ("", "{", "[]", "null", enveloped({}), '{"oslo.version": "2.0"}', "\x00" * 999)


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


def log_disk_full(world: World) -> None:
    """No line can be written."""
    world.schedulers[1].terminate()
    world.sites[1].configure({"DEFAULT": {"log_file": "/dev/full"}})
    world.start_again(1)
    time.sleep(PAUSE_SECONDS)
    world.schedulers[1].terminate()
    world.sites[1].configure({"DEFAULT": {"log_file": ""}})
    world.start_again(1)


def filter_broken(world: World) -> None:
    """A filter raises, hangs and returns nonsense, for the requests that ask for it."""
    for fault in (bad_filter.RAISES, bad_filter.HANGS, bad_filter.NONSENSE) * 3:
        own = str(uuid.uuid4())
        spec = fleet.a_spec(own, scheduler_hints={bad_filter.HINT: [fault]})
        context = RequestContext("user", "project", overwrite=False)
        if fault == bad_filter.RAISES:
            with pytest.raises(errors.NovaException, match="Internal fault"):
                world.api.select_destinations(context, spec, [own])
        else:
            world.api.select_destinations(context, spec, [own])


def a_message() -> dict[str, Any]:
    """A recorded request, for another server."""
    message = recorded("select_destinations-simple.request")
    message["args"]["instance_uuids"] = [str(uuid.uuid4())]
    message["_context_request_id"] = f"req-{uuid.uuid4()}"
    return message


AWAY: Final = frozenset({"StateUnavailable"})

FAULTS: Final = (
    Fault("broker restarted", NOTHING_LOST, broker_restarted),
    Fault("broker stopped for 5 s (SIGSTOP)", NOTHING_LOST, broker_paused),
    Fault("broker killed (SIGKILL)", NOTHING_LOST, broker_killed),
    Fault("all connections to the broker cut", NOTHING_LOST, connections_cut),
    Fault("one of two schedulers killed (SIGKILL)", NOTHING_LOST, scheduler_killed),
    Fault(
        "one of two schedulers told to end (SIGTERM)", AT_ONCE, scheduler_stopped, asks_again=False
    ),
    Fault("one of two schedulers stopped for 5 s (SIGSTOP)", NOTHING_LOST, scheduler_paused),
    Fault("database restarted", "StateUnavailable while it is away", database_restarted, AWAY),
    Fault("database killed (SIGKILL)", "StateUnavailable while it is away", database_killed, AWAY),
    Fault("database stopped for 5 s (SIGSTOP)", "requests wait", database_paused, AWAY),
    Fault("each statement takes 2 s longer", "requests wait", database_slow, AWAY),
    Fault("silence between schedulers and database", "given up", database_silent, AWAY),
    Fault("connections to the database cut", "StateUnavailable at worst", database_cut, AWAY),
    Fault(
        "database read-only", "StateUnavailable: nothing can be booked", database_read_only, AWAY
    ),
    Fault("rows of all hosts locked for 5 s", "requests wait", rows_locked, AWAY),
    Fault("callers gone before their answers", AT_ONCE, callers_gone, asks_again=False),
    Fault("reply queues that are not there", AT_ONCE, replies_nowhere, asks_again=False),
    Fault("requests delivered twice", "one answer, one claim", delivered_twice, asks_again=False),
    Fault("messages that nobody can read", AT_ONCE, poison, asks_again=False),
    Fault("broker away when a scheduler starts", "it waits", broker_away_at_start),
    Fault("database away when a scheduler starts", "it waits", database_away_at_start, AWAY),
    Fault("disk of the log full", AT_ONCE, log_disk_full, asks_again=False),
    Fault("a filter raises, hangs, returns nonsense", "only its requests fail", filter_broken),
    Fault(
        "half-written rows of one host",
        "the other hosts serve",
        rows_half_written,
        asks_again=False,
    ),
    Fault("hosts register and vanish in a burst", AT_ONCE, hosts_come_and_go, asks_again=False),
)
