"""The program: options, commands, output forms, errors."""

from __future__ import annotations

import json
import pathlib
import time

import pytest
import yaml

import scheduler
from scheduler import exit_codes
from scheduler.cli import app, program
from scheduler.db import migration


def test_version(config_file, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        app.main(["--version"])
    assert ended.value.code == exit_codes.OK
    assert capsys.readouterr().out == f"{scheduler.__version__}\n"


@pytest.mark.parametrize("words", [[], ["nonsense"], ["--nonsense"]], ids=str)
def test_no_such_command(refused, words) -> None:
    assert "usage: nova-scheduler-manage" in refused(*words, status=exit_codes.USAGE)


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_explains_itself(config_file, capsys, name) -> None:
    with pytest.raises(SystemExit) as ended:
        app.main(["--config-file", config_file, *name.split(), "--help"])
    assert ended.value.code == exit_codes.OK
    assert f"usage: nova-scheduler-manage {name} " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["config validate", "host list"])
def test_help_on_a_command(config_file, capsys, name) -> None:
    assert app.main(["--config-file", config_file, "help", *name.split()]) == exit_codes.OK
    assert f"usage: nova-scheduler-manage {name} " in capsys.readouterr().out


def test_every_command_belongs_to_a_group_that_help_lists() -> None:
    assert {name.split()[0] for name in app.COMMANDS} == set(app.GROUPS) - {"help", "complete"}


def test_db_sync_and_version(manage, config_file, capsys) -> None:
    assert manage("db", "version") is None
    manage("db", "sync")
    assert app.main(["--config-file", config_file, "db", "version"]) == exit_codes.OK
    assert capsys.readouterr().out.strip() == migration.head()
    manage("db", "sync")


def test_a_column_that_no_table_has(manage, refused) -> None:
    manage("db", "sync")
    assert "['Bogus']" in refused("host", "list", "-c", "Bogus")


def test_db_sync_to_an_unknown_revision(refused) -> None:
    assert "no-such" in refused("db", "sync", "no-such")


@pytest.mark.parametrize("name", [name for name in app.COMMANDS if name.endswith(" list")])
def test_without_tables_the_command_to_run_is_named(refused, name) -> None:
    assert "nova-scheduler-manage db sync" in refused(*name.split())


def test_database_that_cannot_be_opened(config_file, tmp_path, refused) -> None:
    pathlib.Path(config_file).write_text("[database]\nconnection = sqlite:////nowhere/at/all\n")
    assert "sqlite:////nowhere/at/all" in refused("db", "sync")


def test_a_person_does_not_wait_long_for_a_server_that_is_away(
    config_file, capsys, monkeypatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    url = "mysql+pymysql://u:secret@127.0.0.1:1/nova"
    pathlib.Path(config_file).write_text(f"[database]\nconnection = {url}\n")
    assert app.main(["--config-file", config_file, "host", "list"]) == exit_codes.FAILURE
    assert 0 < sum(pauses) <= program.DATABASE_RETRIES * program.DATABASE_RETRY_SECONDS
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert last_line.startswith("nova-scheduler-manage: error: ")
    assert "[database] connection: mysql+pymysql://u:***@127.0.0.1:1/nova" in last_line


def test_bad_database_url(config_file, refused) -> None:
    pathlib.Path(config_file).write_text("[database]\nconnection = nonsense\n")
    assert "[database] connection" in refused("db", "version")


def test_debug_explains_a_failure(config_file, capsys, database) -> None:
    words = ["--debug", "aggregate", "show", "x"]
    assert app.main(["--config-file", config_file, *words]) == exit_codes.FAILURE
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ("json", lambda text: json.loads(text)[0]["Host"]),
        ("yaml", lambda text: yaml.safe_load(text)[0]["Host"]),
        ("csv", lambda text: text.splitlines()[1].strip('"')),
        ("value", lambda text: text.strip()),
        ("table", lambda text: text.splitlines()[3].strip("| ")),
    ],
)
def test_output_forms(config_file, capsys, add_host, output, read) -> None:
    add_host("alpha")
    words = ["host", "list", "-f", output, "-c", "Host"]
    assert app.main(["--config-file", config_file, *words]) == exit_codes.OK
    assert read(capsys.readouterr().out) == "alpha"


def test_usage_in_a_table_is_used_of_total(config_file, capsys, add_host) -> None:
    add_host("alpha")
    assert app.main(["--config-file", config_file, "host", "list"]) == exit_codes.OK
    assert "| 4/16  |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("host show ghost", "ghost"),
        ("service set --enable ghost nova-compute", "nova-compute on ghost"),
        ("aggregate show ghost", "Aggregate ghost"),
        ("aggregate set ghost --name x", "Aggregate ghost"),
        ("aggregate add-host ghost alpha", "Aggregate ghost"),
        ("aggregate add-host there ghost", "ghost"),
        ("aggregate remove-host there ghost", "ghost"),
        ("aggregate delete ghost", "Aggregate ghost"),
        ("aggregate create there", "there already exists"),
        ("flavor show ghost", "Flavor ghost"),
        ("flavor delete ghost", "Flavor ghost"),
        ("flavor create there", "there"),
        ("group show ghost", "ghost"),
    ],
)
def test_what_is_unknown_or_taken_is_named(manage, refused, database, words, part) -> None:
    manage("aggregate", "create", "there", "-f", "json")
    manage("flavor", "create", "there", "-f", "json")
    assert part in refused(*words.split())


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("aggregate create x --property ssd", "key=value"),
        ("aggregate set there", "--name"),
        ("flavor create x --ram none", "'none'"),
        ("flavor create x --vcpus 0", "at least 1"),
        ("flavor create x --disk -1", "--disk"),
        ("flavor create x --project p", "--private"),
        ("group create x --policy nearby", "nearby"),
        ("group create x --rule max_server_per_host=2", "anti-affinity only"),
        ("group create x --policy anti-affinity --rule max_server_per_host=0", "at least 1"),
        ("group create x --policy anti-affinity --rule speed=2", "speed"),
    ],
)
def test_usage_errors(manage, refused, database, words, part) -> None:
    manage("aggregate", "create", "there", "-f", "json")
    assert part in refused(*words.split(), status=exit_codes.USAGE)
