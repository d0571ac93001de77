"""What faults happen to: two schedulers, a broker and a database of their own, and steady load."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy

from scheduler.db import compute_nodes, services
from scheduler.db.database import Database
from scheduler.rpc.client import SchedulerAPI
from tests.daemons.deployment import Deployment, Settings
from tests.daemons.process import Daemon
from tests.faults.load import HOST, LOST, Load
from tests.faults.proxy import Proxy
from tests.functional import fleet
from tests.functional.bus import scheduler_api
from tests.servers.mariadb import MariaDB
from tests.servers.rabbitmq import RabbitMQ

HOSTS: Final = tuple(f"cmp{number}" for number in range(1, 11))
#: How long a caller waits for an answer, and for a sign of life.
PATIENCE_SECONDS: Final = 6
ACCOUNT: Final = "scheduler"
ANSWERS_BEFORE, ANSWERS_AFTER = 20, 40
#: Room for everything that is asked for here.
BIG: Final = {"memory_mb": 2**24, "free_ram_mb": 2**24, "vcpus": 10_000}
SILENCE_TIMEOUT_SECONDS: Final = 8
REPOSITORY: Final = Path(__file__).parents[2]
SETTINGS: Settings = {
    "DEFAULT": {"service_down_time": 36000, "report_interval": 2, "debug": False},
    "claims": {"expiry_seconds": 36000},
    "database": {"silence_timeout_seconds": SILENCE_TIMEOUT_SECONDS},
    "scheduler": {"claims": "database", "max_state_age_seconds": 60},
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

    def __init__(self, folder: Path, rabbitmq: RabbitMQ, mariadb: MariaDB, proxy: Proxy) -> None:
        self.proxy = proxy
        self.rabbitmq = rabbitmq
        self.mariadb = mariadb
        self.database = mariadb.create_database()
        mariadb.create_account(ACCOUNT, [f"ALL ON {self.database}.*"])
        self.own_url = mariadb.url(self.database)
        fleet.install(self.own_url, HOSTS, **BIG)
        url = mariadb.url(self.database, ACCOUNT).replace(f":{mariadb.port}/", f":{proxy.port}/")
        self.sites: list[Deployment] = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            settings = {**SETTINGS, "DEFAULT": {**SETTINGS["DEFAULT"], "host": name}}
            self.sites.append(Deployment(folder / name, rabbitmq.url(), url, settings=settings))
        self.schedulers = [self.begin(number) for number in range(len(self.sites))]

    def begin(self, number: int) -> Daemon:
        """Begin to start a scheduler."""
        path = {"PYTHONPATH": str(REPOSITORY)}
        return self.sites[number].start_scheduler(extra_environment=path)

    def start_again(self, number: int) -> None:
        """Start a scheduler that has ended."""
        self.schedulers[number] = self.begin(number).wait_ready()

    def query(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """Ask, or change, the database with an account that may do everything."""
        with self._connected() as connection, connection.begin():
            done = connection.execute(sqlalchemy.text(statement), values)
            return [dict(row) for row in done.mappings()] if done.returns_rows else []

    @contextlib.contextmanager
    def locked(self, statement: str) -> Iterator[None]:
        """Keep the locks of *statement*."""
        with self._connected() as connection, connection.begin():
            connection.execute(sqlalchemy.text(statement))
            yield

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlalchemy.Connection]:
        engine = sqlalchemy.create_engine(self.own_url)
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()

    def add_host(self, name: str) -> None:
        """Register one more host, with a service that has just been heard of."""
        database = Database(self.own_url)
        try:
            with database.write() as connection:
                services.create_many(connection, [name], services.COMPUTE_BINARY, "compute", 60)
                compute_nodes.upsert_many(connection, [{**fleet.node(name), **BIG}])
        finally:
            database.dispose()

    def claims(self) -> Mapping[str, str]:
        """The host that is booked for each server."""
        found = self.query("SELECT consumer_uuid, host FROM claims WHERE closed_at IS NULL")
        return {each["consumer_uuid"]: each["host"] for each in found}

    def close(self) -> None:
        """Leave no process behind."""
        for each in self.sites:
            each.close()


@contextlib.contextmanager
def calling(world: World, folder: Path) -> Iterator[SchedulerAPI]:
    """A client with little patience."""
    with scheduler_api(folder, world.rabbitmq.url(), response_seconds=PATIENCE_SECONDS) as api:
        yield api


@contextlib.contextmanager
def made(folder: Path, rabbitmq: RabbitMQ, mariadb: MariaDB) -> Iterator[World]:
    """A world on servers that are the caller's to break."""
    with Proxy(mariadb.port) as proxy, contextlib.ExitStack() as ending:
        world = World(folder, rabbitmq, mariadb, proxy)
        ending.callback(world.close)
        for each in world.schedulers:
            each.wait_ready()
        yield world


def endured(world: World, api: SchedulerAPI, act: Callable[[], None]) -> Account:
    """Let *act* break and mend something under load.

    Raises AssertionError unless every server that got a host is booked there.
    """
    with Load(api) as load:
        load.wait_for_answers(ANSWERS_BEFORE)
        began = time.monotonic()
        act()
        ended = time.monotonic()
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
