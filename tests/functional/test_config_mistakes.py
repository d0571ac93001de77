"""A mistake in the configuration stops every program with one clear line, and no traceback."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from scheduler.db import migration
from scheduler.db.database import Database
from tests.servers.mariadb import MariaDB
from tests.servers.rabbitmq import RabbitMQ
from tests.world import process
from tests.world.deployment import render

SCHEDULER = ("nova-scheduler",)
CONDUCTOR = ("nova-conductor-stub", "serve")
BOOT = ("nova-conductor-stub", "boot", "--flavor", "m1.tiny", "--image", "cirros")
COMPUTE = ("nova-compute-stub", "--hosts", "1")
MANAGE = ("nova-scheduler-manage", "host", "list")

ALL = (SCHEDULER, CONDUCTOR, BOOT, COMPUTE, MANAGE)


@dataclass(frozen=True)
class Mistake:
    """Settings that are wrong, what the line must name, and which programs are to notice.

    They all go through the same checks.
    """

    settings: Mapping[str, Mapping[str, Any]]
    names: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...] = (SCHEDULER,)


def scheduler_option(**options: str) -> dict[str, dict[str, str]]:
    return {"scheduler": options}


def filter_option(**options: str) -> dict[str, dict[str, str]]:
    return {"filter_scheduler": options}


def database(url: str) -> dict[str, dict[str, Any]]:
    return {"database": {"connection": url, "max_retries": 0}}


def bus(url: str) -> dict[str, dict[str, str]]:
    return {"DEFAULT": {"transport_url": url}}


MISTAKES = {
    "unknown driver": Mistake(
        scheduler_option(driver="filter_schedular"),
        ("[scheduler] driver", "filter_schedular"),
    ),
    "driver that is no driver": Mistake(
        scheduler_option(driver="collections.OrderedDict"),
        ("[scheduler] driver", "collections.OrderedDict"),
    ),
    "unknown host manager": Mistake(
        scheduler_option(host_manager="nobody"),
        ("[scheduler] host_manager", "nobody"),
    ),
    "unknown filter": Mistake(
        filter_option(enabled_filters="RamFilter,RamFiltre"),
        ("[filter_scheduler] enabled_filters", "RamFiltre"),
    ),
    "unknown module of filters": Mistake(
        filter_option(available_filters="no.such.module.Filter"),
        ("[filter_scheduler] available_filters", "no.such.module.Filter"),
    ),
    "filter that is no filter": Mistake(
        filter_option(available_filters="collections.OrderedDict"),
        ("[filter_scheduler] available_filters", "collections.OrderedDict"),
    ),
    "unknown weigher": Mistake(
        filter_option(weight_classes="no.such.Weigher"),
        ("[filter_scheduler] weight_classes", "no.such.Weigher"),
    ),
    "weigher with a typo": Mistake(
        filter_option(weight_classes="nova.scheduler.weights.ram.RAMWeiger"),
        ("[filter_scheduler] weight_classes", "did you mean nova.scheduler.weights.ram.RAMWeigher"),
    ),
    "cap of no release": Mistake(
        {"upgrade_levels": {"scheduler": "newtn"}},
        ("[upgrade_levels] scheduler", "newtn"),
        (CONDUCTOR,),
    ),
    "cap that is no version": Mistake(
        {"upgrade_levels": {"baseapi": "newest"}},
        ("[upgrade_levels] baseapi", "newest"),
    ),
    "unknown database": Mistake(
        database("sqlight:///x"), ("[database] connection", "sqlight"), ALL
    ),
    "database URL that is none": Mistake(database("nova.sqlite"), ("[database] connection",)),
    "unknown database driver": Mistake(
        database("mysql+nothing://u:secret@h/nova"),
        ("[database] connection", "mysql+nothing"),
        (COMPUTE,),
    ),
    "database that does not answer": Mistake(
        database("mysql+pymysql://u:secret@127.0.0.1:1/nova"), ("[database] connection",)
    ),
    "text for a number": Mistake(
        scheduler_option(max_attempts="many"), ("[scheduler] max_attempts", "many")
    ),
    "number out of range": Mistake(
        scheduler_option(max_attempts="0"), ("[scheduler] max_attempts",)
    ),
    "empty host": Mistake({"DEFAULT": {"host": ""}}, ("[DEFAULT] host",), (CONDUCTOR,)),
    "unknown concurrency": Mistake(
        {"DEFAULT": {"concurrency_backend": "twisted"}},
        ("[DEFAULT] concurrency_backend", "twisted"),
        (COMPUTE,),
    ),
    "unknown bus": Mistake(
        bus("carrier://u:secret@h/"), ("[DEFAULT] transport_url", "carrier"), (SCHEDULER, BOOT)
    ),
    "bus that reaches nobody": Mistake(bus("fake://"), ("reaches no conductor",), (BOOT,)),
    "broker that is not there": Mistake(
        bus("rabbit://guest:secret@127.0.0.1:1/"), ("cannot be used",), (BOOT,)
    ),
    "bus with a port that is none": Mistake(
        bus("rabbit://u:secret@h:port/"), ("[DEFAULT] transport_url",), (COMPUTE,)
    ),
}
ROWS = [
    pytest.param(command, mistake, id=f"{' '.join(command[:2])}: {name}")
    for name, mistake in MISTAKES.items()
    for command in mistake.commands
]


@pytest.fixture(scope="session")
def database_url(tmp_path_factory: pytest.TempPathFactory) -> str:
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
        "database": {"connection": url},
    }
    groups = {**right, **mistake}
    return render({group: {**right.get(group, {}), **groups[group]} for group in groups})


def run(
    folder: Path, command: tuple[str, ...], text: str | bytes
) -> subprocess.CompletedProcess[str]:
    """Run *command* on a configuration file of that text, to its end."""
    path = folder / "nova.conf"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return process.run(command[0], "--config-file", str(path), *command[1:], folder=folder)


def assert_refused(done: subprocess.CompletedProcess[str], command: str, *names: str) -> None:
    """The program ended because of its configuration, and said so in one line."""
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{command}: error: ")]
    assert len(lines) == 1, done.stderr
    for name in names:
        assert name in lines[0]
    everything = done.stdout + done.stderr
    assert "Traceback" not in everything
    assert "secret" not in everything
    assert not [line for line in done.stderr.splitlines() if " ERROR " in line], done.stderr


@pytest.mark.parametrize(("command", "mistake"), ROWS)
def test_a_wrong_setting_stops_the_start(
    tmp_path: Path, database_url: str, command: tuple[str, ...], mistake: Mistake
) -> None:
    done = run(tmp_path, command, config_text(database_url, mistake.settings))
    assert_refused(done, command[0], *mistake.names)


@pytest.mark.parametrize("command", [SCHEDULER, BOOT, MANAGE], ids=" ".join)
def test_a_database_without_tables_stops_the_start(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    url = f"sqlite:///{tmp_path}/foreign.sqlite"
    with Database(url).write() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE something (id INTEGER)"))
    assert_refused(
        run(tmp_path, command, config_text(url, {})), command[0], "nova-scheduler-manage db sync"
    )


@pytest.mark.functional
@pytest.mark.parametrize("command", [SCHEDULER, COMPUTE], ids=" ".join)
def test_a_database_that_refuses_the_login_stops_the_start(
    tmp_path: Path, mariadb: MariaDB, command: tuple[str, ...]
) -> None:
    url = f"mysql+pymysql://nova:wrong-secret@{mariadb.url('nova').partition('@')[2]}"
    done = run(tmp_path, command, config_text(url, {}))
    assert_refused(done, command[0], "[database] connection", "Access denied")


@pytest.mark.functional
def test_a_broker_that_refuses_the_login_is_told_in_one_line(
    tmp_path: Path, database_url: str, rabbitmq: RabbitMQ
) -> None:
    url = rabbitmq.url().replace("guest:guest", "guest:wrong-secret")
    done = run(tmp_path, BOOT, config_text(database_url, bus(url)))
    assert_refused(done, BOOT[0], "ACCESS_REFUSED")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        pytest.param(SCHEDULER, b"[DEFAULT]\nthis is no setting\n", id="line without a value"),
        pytest.param(CONDUCTOR, b"[DEFAULT\nhost = x\n", id="group without an end"),
        pytest.param(COMPUTE, b"[DEFAULT]\nhost = \xff\xfe\n", id="bytes that are no text"),
        pytest.param(MANAGE, b"host = x\n[DEFAULT]\n", id="setting without a group"),
    ],
)
def test_an_unreadable_file_stops_the_start(
    tmp_path: Path, command: tuple[str, ...], text: bytes
) -> None:
    assert_refused(run(tmp_path, command, text), command[0], str(tmp_path / "nova.conf"))


@pytest.mark.parametrize("command", [SCHEDULER, MANAGE], ids=" ".join)
def test_a_missing_file_stops_the_start(tmp_path: Path, command: tuple[str, ...]) -> None:
    path = str(tmp_path / "absent.conf")
    done = process.run(command[0], "--config-file", path, *command[1:], folder=tmp_path)
    assert_refused(done, command[0], path)


def test_a_profile_with_a_typo_stops_the_compute_stub(tmp_path: Path, database_url: str) -> None:
    profile = tmp_path / "hosts.yaml"
    profile.write_text("hosts:\n  - {name: small, vcpus: 4, memory: 8192, local_gb: 80}\n")
    done = run(
        tmp_path,
        ("nova-compute-stub", "--profile", str(profile)),
        config_text(database_url, {}),
    )
    assert_refused(done, "nova-compute-stub", str(profile), "hosts[0].memory", "memory_mb")
