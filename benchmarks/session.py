"""What the subjects of one workload share: private servers, folders, the databases of fleets."""

import contextlib
import datetime
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from benchmarks import install
from benchmarks.fleet import NOW, FleetPlan
from benchmarks.workload import WorkloadError
from tests.servers.mariadb import MariaDB
from tests.servers.rabbitmq import RabbitMQ

Shared = TypeVar("Shared")


@dataclass(frozen=True)
class Servers:
    """Those that somebody has started, and goes on to use."""

    rabbitmq: RabbitMQ | None = None
    mariadb: MariaDB | None = None


NO_SERVERS = Servers()


class Session:
    """Servers start when first asked for, and end with the session."""

    def __init__(self, profiles: Path | None = None, servers: Servers = NO_SERVERS) -> None:
        """Daemons write their profiles into *profiles*, if given; *servers* run already."""
        self._profiles = profiles
        self._ending = contextlib.ExitStack()
        self._rabbitmq, self._mariadb = servers.rabbitmq, servers.mariadb
        self._made: dict[str, Any] = {}
        #: The time of subjects that move it on by themselves; they take turns.
        self.now = NOW

    def clock(self) -> float:
        """The session's time in seconds since the epoch."""
        return self.now.timestamp()

    @property
    def rabbitmq(self) -> RabbitMQ:
        """The session's broker."""
        if self._rabbitmq is None:
            self._rabbitmq = self._ending.enter_context(RabbitMQ())
        return self._rabbitmq

    @property
    def mariadb(self) -> MariaDB:
        """The session's database server."""
        if self._mariadb is None:
            self._mariadb = self._ending.enter_context(MariaDB())
        return self._mariadb

    def database(self, engine: str, plan: FleetPlan, now: datetime.datetime = NOW) -> str:
        """The URL of a new database on *engine* (``mariadb`` or ``sqlite``) with that fleet."""
        if engine == "mariadb":
            url = self.mariadb.url(self.mariadb.create_database())
        elif engine == "sqlite":
            url = f"sqlite:///{self.folder()}/nova.sqlite"
        else:
            raise WorkloadError(f"database: {engine!r} is neither mariadb nor sqlite")
        install.into_own(url, plan, now)
        return url

    def shared_database(self, engine: str, plan: FleetPlan) -> str:
        """The URL of the one such database that the subjects which ask here share."""
        return self.once(f"{engine} {plan}", lambda _ending: self.database(engine, plan))

    def once(self, key: str, make: Callable[[contextlib.ExitStack], Shared]) -> Shared:
        """What *make* returned when it was first asked for *key*; its stack ends with this."""
        if key not in self._made:
            self._made[key] = make(self._ending)
        made: Shared = self._made[key]
        return made

    def profile_of(self, daemon: str) -> Path | None:
        """Where *daemon* is to write its profile, if it is to write one."""
        return None if self._profiles is None else self._profiles / daemon

    def folder(self) -> Path:
        """A new folder that goes with the session."""
        name = self._ending.enter_context(tempfile.TemporaryDirectory(prefix="nst-bench-"))
        return Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._ending.close()
