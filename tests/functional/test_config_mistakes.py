"""A mistake in the configuration stops the stubs with one clear line, too, and no traceback.

All programs go through the checks of ``config validate``; test_mistakes has more of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from scheduler.db import migration
from scheduler.db.database import Database
from tests.world import process
from tests.world.deployment import render

CONDUCTOR = "nova-conductor-stub serve"
BOOT = "nova-conductor-stub boot --flavor m1.tiny --image cirros"
COMPUTE = "nova-compute-stub --hosts 1"

#: Program, group, option, its value, and what the line must name besides.
MISTAKES = [
    (CONDUCTOR, "upgrade_levels", "scheduler", "newtn", "newtn"),
    (CONDUCTOR, "DEFAULT", "host", "", ""),
    (COMPUTE, "database", "connection", "mysql+nothing://u:secret@h/nova", "mysql+nothing"),
    (COMPUTE, "DEFAULT", "concurrency_backend", "twisted", "twisted"),
    (COMPUTE, "DEFAULT", "transport_url", "rabbit://u:secret@h:port/", ""),
    (BOOT, "DEFAULT", "transport_url", "carrier://u:secret@h/", "carrier"),
    (BOOT, "database", "connection", "sqlight:///x", "sqlight"),
]


@pytest.fixture(scope="session")
def database_url(tmp_path_factory) -> str:
    """A database with its tables, which nothing here changes."""
    url = f"sqlite:///{tmp_path_factory.mktemp('tables')}/nova.sqlite"
    tables = Database(url)
    migration.sync(tables)
    tables.dispose()
    return url


def config_text(url: str, mistake: Mapping[str, Mapping[str, Any]]) -> str:
    """A configuration that is right except for *mistake*."""
    right: dict[str, dict[str, Any]] = {
        "DEFAULT": {"transport_url": "rabbit://guest:guest@127.0.0.1:1/", "host": "sched1"},
        "database": {"connection": url, "max_retries": 0},
    }
    groups = {**right, **mistake}
    return render({group: {**right.get(group, {}), **groups[group]} for group in groups})


def assert_refused(folder: Path, command: str, text: str, *names: str) -> None:
    """The program ends because of a file of that *text*, and says so in one line."""
    path = folder / "nova.conf"
    path.write_text(text)
    name, *words = command.split()
    done = process.run(name, "--config-file", str(path), *words, folder=folder)
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{name}: error: ")]
    assert len(lines) == 1, done.stderr
    assert [each for each in names if each not in lines[0]] == []
    everything = done.stdout + done.stderr
    assert "Traceback" not in everything
    assert "secret" not in everything
    assert not [line for line in done.stderr.splitlines() if " ERROR " in line], done.stderr


@pytest.mark.parametrize(("command", "group", "option", "value", "named"), MISTAKES)
def test_a_wrong_setting_stops_the_start(
    tmp_path, database_url, command, group, option, value, named
):
    text = config_text(database_url, {group: {option: value}})
    assert_refused(tmp_path, command, text, f"[{group}] {option}", named)


@pytest.mark.parametrize("command", [COMPUTE, BOOT])
def test_a_database_without_tables_stops_the_start(tmp_path, command):
    url = f"sqlite:///{tmp_path}/foreign.sqlite"
    with Database(url).write() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE something (id INTEGER)"))
    assert_refused(tmp_path, command, config_text(url, {}), "nova-scheduler-manage db sync")


def test_a_bus_that_is_no_use_to_a_command_is_told_in_one_line(tmp_path, database_url, rabbitmq):
    for url, told in (
        ("fake://", "reaches no conductor"),
        ("rabbit://guest:secret@127.0.0.1:1/", "cannot be used"),
        (rabbitmq.url().replace("guest:guest", "guest:wrong-secret"), "ACCESS_REFUSED"),
    ):
        text = config_text(database_url, {"DEFAULT": {"transport_url": url}})
        assert_refused(tmp_path, BOOT, text, told)
