"""A database of its own for every test, and what to put into it."""

from __future__ import annotations

import pathlib
import shutil
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler import objects
from scheduler.db import instances, migration
from scheduler.db.database import Database


@pytest.fixture(scope="session")
def _empty_database(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("database") / "nova.sqlite"
    database = Database(f"sqlite:///{path}")
    migration.sync(database)
    database.dispose()
    return path


@pytest.fixture
def database(_empty_database: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Database]:
    """A SQLite database with all tables and nothing but the first content in them."""
    path = tmp_path / "nova.sqlite"
    shutil.copy(_empty_database, path)
    database = Database(f"sqlite:///{path}")
    yield database
    database.dispose()


def an_instance(database: Database, **changes: Any) -> objects.Instance:
    """Insert an instance of 1 vCPU, 512 MB, 10 GB that waits for a host."""
    instance_uuid = str(uuid.uuid4())
    flavor = objects.Flavor(
        id=1, name="small", flavorid="s", memory_mb=512, vcpus=1, root_gb=10, ephemeral_gb=0, swap=0
    )
    values = {
        "uuid": instance_uuid,
        "vm_state": "building",
        "task_state": "scheduling",
        "vcpus": 1,
        "memory_mb": 512,
        "root_gb": 10,
        "ephemeral_gb": 0,
        "project_id": "p",
        "flavor": flavor,
    }
    instance = objects.Instance(**{**values, **changes})
    with database.write() as conn:
        instances.create(conn, instance)
    return instance
