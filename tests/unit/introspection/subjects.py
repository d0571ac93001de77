"""A worker that can be asked, on a SQLite database of its own."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.daemon.service import build_manager
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.introspection.state import Subject
from tests.builders import a_conf
from tests.world import fleet


@dataclass(frozen=True)
class World:
    """The only worker of a daemon, and the database that it reads."""

    subject: Subject
    database: Database

    def read(self) -> None:
        """Bring the worker's state up to date."""
        self.subject.host_manager.refresh()


@contextlib.contextmanager
def a_world(folder: Path, hosts: int = 3, **options: Any) -> Iterator[World]:
    """*hosts* compute hosts ``cmp1``, ``cmp2``, …, that have been read, with *options*."""
    url = f"sqlite:///{folder}/nova.sqlite"
    fleet.install(url, [f"cmp{number}" for number in range(1, hosts + 1)])
    conf = a_conf(database__connection=url, DEFAULT__service_down_time=3600, **options)
    databases = Databases.from_conf(conf)
    try:
        world = World(Subject(conf, build_manager(conf, databases), 1, 1), databases.main)
        world.read()
        yield world
    finally:
        databases.dispose()
