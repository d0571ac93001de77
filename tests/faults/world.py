"""What faults happen to: two schedulers, a broker and a database of their own, and steady load."""

import contextlib
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conductor_stub.compute import registration
from conductor_stub.rpcapi import SchedulerAPI
from scheduler.rpc.context import RequestContext
from tests.faults import bad_filter
from tests.servers.mariadb import MariaDB
from tests.servers.rabbitmq import RabbitMQ
from tests.world import databases, fleet
from tests.world.deployment import Deployment, Settings, render
from tests.world.disks import SmallDisk
from tests.world.load import HOST, LOST, Load
from tests.world.process import Daemon
from tests.world.proxy import Proxy

HOSTS: Final = tuple(f"cmp{number}" for number in range(1, 11))
#: How long a caller waits for an answer, and for a sign of life.
PATIENCE_SECONDS: Final = 6
#: How long something stays broken, where that is for us to say.
PAUSE_SECONDS: Final = 5.0
ACCOUNT: Final = "scheduler"
ANSWERS_BEFORE, ANSWERS_MEANWHILE, ANSWERS_AFTER = 20, 20, 40
#: Room for everything that is asked for here.
BIG: Final = {"memory_mb": 2**24, "free_ram_mb": 2**24, "vcpus": 10_000}
SILENCE_TIMEOUT_SECONDS: Final = 8
#: How long the database lets somebody wait for a lock.
LOCK_WAIT_SECONDS: Final = 2
HEARTBEAT_SECONDS: Final = 1.0
DATABASE_DISK_KIB: Final = 400 * 1024
REDO_MIB: Final = 4
#: Of each worker; less than what callers leave behind that are gone.
THREADS: Final = 16
REPOSITORY: Final = Path(__file__).parents[2]
SETTINGS: Settings = {
    "DEFAULT": {
        "service_down_time": 36000,
        "report_interval": 2,
        "debug": False,
        "executor_thread_pool_size": THREADS,
    },
    "claims": {"expiry_seconds": 36000},
    "database": {"silence_timeout_seconds": SILENCE_TIMEOUT_SECONDS},
    "scheduler": {"claims": "database", "max_state_age_seconds": 60, "workers": 2},
    "filter_scheduler": {
        "available_filters": [
            "nova.scheduler.filters.all_filters",
            "tests.faults.bad_filter.BadFilter",
        ],
        "enabled_filters": "ComputeFilter,RamFilter,ImagePropertiesFilter,BadFilter",
    },
}


@dataclass(frozen=True)
class Account:
    """What became of the requests around one fault."""

    requests: int
    asked_again: int
    #: How many got which error.
    refusals: Mapping[str, int]
    lost: int
    #: From the end of the fault to the first answer.
    recovery_seconds: float


class World:
    """Everything that can break; ``api`` is a client's, which is no part of it."""

    api: SchedulerAPI

    #: While something happens.
    load: Load

    def __init__(
        self, folder: Path, rabbitmq: RabbitMQ, mariadb: MariaDB, proxy: Proxy, disk: SmallDisk
    ) -> None:
        self.folder = folder
        #: Where the data of the database is.
        self.disk = disk
        self.proxy = proxy
        self.rabbitmq = rabbitmq
        self.mariadb = mariadb
        self.database = mariadb.create_database()
        mariadb.create_account(ACCOUNT, [f"ALL ON {self.database}.*"])
        self.own_url = mariadb.url(self.database)
        fleet.install(self.own_url, HOSTS, **BIG)
        #: What schedulers have, but for the proxy.
        self.database_url = mariadb.url(self.database, ACCOUNT)
        url = self.database_url.replace(f":{mariadb.port}/", f":{proxy.port}/")
        self.mended_at: float | None = None
        #: Times to the first answer after silence, by whether the fast path is used.
        self.silent_seconds: dict[bool, float] = {}
        self.sites: list[Deployment] = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            settings = {**SETTINGS, "DEFAULT": {**SETTINGS["DEFAULT"], "host": name}}
            self.sites.append(Deployment(folder / name, rabbitmq.url(), url, settings=settings))
        self.schedulers = [self.begin(number) for number in range(len(self.sites))]

    def begin(
        self, number: int, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> Daemon:
        path = {"PYTHONPATH": str(REPOSITORY), **(environment or {})}
        return self.sites[number].start_scheduler(*arguments, extra_environment=path)

    def start_again(self, number: int) -> None:
        self.schedulers[number] = self.begin(number).wait_ready()

    @contextlib.contextmanager
    def changed(
        self,
        number: int,
        *,
        options: Settings | None = None,
        environment: Mapping[str, str] | None = None,
        run_by: Sequence[str] = (),
    ) -> Iterator[Daemon]:
        """Have a scheduler run with other *options*, in another way, for as long as this lasts."""
        site, more = self.sites[number], self.folder / f"more-{number}.conf"
        more.write_text(render(options or {}), encoding="utf-8")
        assert self.schedulers[number].terminate() == 0
        site.run_by = run_by
        self.schedulers[number] = self.begin(
            number, "--config-file", str(more), environment=environment
        ).wait_ready()
        try:
            yield self.schedulers[number]
        finally:
            daemon = self.schedulers[number]
            assert daemon.exit_code is not None or daemon.terminate() == 0
            site.run_by = ()
            self.start_again(number)

    def ask(self, hints: Mapping[str, Any]) -> tuple[str, str]:
        """Ask for a host for one more server; returns the server and the host."""
        own, context = str(uuid.uuid4()), RequestContext("user", "project", overwrite=False)
        spec = fleet.a_spec(own, scheduler_hints=hints)
        (chosen,) = self.api.select_destinations(context, spec, [own])
        return own, str(chosen["host"])

    def mended(self) -> None:
        """What was broken is whole again, although something is left to be done after this."""
        self.mended_at = time.monotonic()
        self.load.wait_for_answers(ANSWERS_MEANWHILE)

    def held_by(self, sign: Path) -> Mapping[str, Any]:
        """Hints that keep a request in hand from when *sign* appears until it is removed."""
        return {bad_filter.HINT: [bad_filter.IN_HAND, str(sign), HOSTS[0]]}

    def query(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """Ask, or change, the database with an account that may do everything."""
        return databases.query(self.own_url, statement, **values)

    @contextlib.contextmanager
    def only_room_on(self, host: str) -> Iterator[None]:
        """All other hosts report that they have none."""
        report = "UPDATE compute_nodes SET updated_at = UTC_TIMESTAMP(), "
        others = " WHERE host != :host"
        self.query(f"{report} memory_mb = 0, free_ram_mb = 0 {others}", host=host)
        try:
            yield
        finally:
            self.query(
                f"{report} memory_mb = :memory_mb, free_ram_mb = :free_ram_mb {others}",
                host=host,
                memory_mb=BIG["memory_mb"],
                free_ram_mb=BIG["free_ram_mb"],
            )

    @contextlib.contextmanager
    def heartbeats(self) -> Iterator[None]:
        """The services of all hosts are heard of, as they are of live ones."""
        ending = threading.Event()

        def beat() -> None:
            while not ending.wait(HEARTBEAT_SECONDS):
                self.query("UPDATE services SET last_seen_up = UTC_TIMESTAMP()")

        self.query("UPDATE services SET last_seen_up = UTC_TIMESTAMP()")
        thread = threading.Thread(target=beat)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def add_host(self, name: str) -> None:
        """Register one more host, with a service that has just been heard of."""
        with databases.opened(self.own_url) as database, database.write() as connection:
            registration.put_services(connection, [name], 60)
            registration.put_nodes(connection, [{**fleet.node(name), **BIG}])

    def claims(self) -> Mapping[str, str]:
        """The host that is booked for each server."""
        found = self.query("SELECT consumer_uuid, host FROM claims WHERE closed_at IS NULL")
        return {each["consumer_uuid"]: each["host"] for each in found}

    def close(self) -> None:
        for each in self.sites:
            each.close()


@contextlib.contextmanager
def made(folder: Path) -> Iterator[World]:
    options = [
        f"--innodb-lock-wait-timeout={LOCK_WAIT_SECONDS}",
        f"--innodb-log-file-size={REDO_MIB}M",
    ]
    with contextlib.ExitStack() as ending:
        disk = ending.enter_context(SmallDisk(folder / "disk", DATABASE_DISK_KIB))
        rabbitmq = ending.enter_context(RabbitMQ())
        data = disk.folder / "data"
        mariadb = ending.enter_context(MariaDB(durable=True, data=data, options=options))
        proxy = ending.enter_context(Proxy(mariadb.port))
        world = World(folder, rabbitmq, mariadb, proxy, disk)
        ending.callback(world.close)
        for each in world.schedulers:
            each.wait_ready()
        yield world


def endured(world: World, api: SchedulerAPI, act: Callable[[], None]) -> Account:
    """Let *act* break and mend something under load.

    Raises AssertionError unless every server that got a host is booked there.
    """
    with Load(api) as load:
        world.load, world.mended_at = load, None
        load.wait_for_answers(ANSWERS_BEFORE)
        began = time.monotonic()
        act()
        ended = world.mended_at or time.monotonic()
        load.wait_for_answers(ANSWERS_AFTER)
    claims = world.claims()
    served = [each for each in load.requests if each.outcome == HOST]
    assert [each for each in served if claims.get(each.uuid) != each.host] == []
    outcomes = Counter(each.outcome for each in load.requests)
    return Account(
        len(load.requests),
        sum(each.tries > 1 for each in load.requests),
        {name: count for name, count in outcomes.items() if name not in (HOST, LOST)},
        outcomes[LOST],
        load.recovery_seconds(began, ended),
    )
