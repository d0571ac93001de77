"""The program: options, commands, output forms, errors."""

import json
import pathlib
import pkgutil
import socket
import time

import pytest
import yaml
from oslo_config import cfg

import scheduler
from scheduler import exit_codes
from scheduler.cli import app, command
from scheduler.db import migration


def test_version(config_file, capsys):
    with pytest.raises(SystemExit) as ended:
        app.main(["--version"])
    assert ended.value.code == exit_codes.OK
    assert capsys.readouterr().out == f"{scheduler.__version__}\n"


def test_help_begins_with_the_use_and_the_commands(run):
    for words in (["--help"], ["help"]):
        status, out, err = run(*words)
        assert (status, err) == (exit_codes.OK, "")
        titles = [line for line in out.splitlines() if line and not line.startswith(" ")]
        assert titles[1:] == [app.DESCRIPTION, "commands:", "options:", "options of logging:"]


@pytest.mark.parametrize("group", sorted({name.split()[0] for name in app.COMMANDS if " " in name}))
def test_help_of_a_group_lists_its_commands(run, group):
    of_group = [name for name in app.COMMANDS if name.split()[0] == group]
    for words in ([group, "--help"], ["help", group]):
        status, out, err = run(*words)
        assert (status, err) == (exit_codes.OK, "")
        assert [name for name in of_group if f"  {name} " not in out] == []


@pytest.mark.parametrize(("words", "where"), [("help nope", "--help"), ("host zzz", "help host")])
def test_what_is_no_command_is_told_where_they_are_listed(run, words, where):
    status, _out, err = run(*words.split())
    assert status == exit_codes.USAGE
    assert err.endswith(f" is not a command; see nova-scheduler-manage {where}\n")
    assert run(*where.split())[0] == exit_codes.OK


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_has_the_forms_for_programs(run, name):
    kind = pkgutil.resolve_name(app.COMMANDS[name])
    parser = kind(app.Manage(cfg.ConfigOpts()), None).get_parser(name)
    [forms] = [each for each in parser._actions if "-f" in each.option_strings]
    assert {"json", "yaml", "value"} <= set(forms.choices)
    [as_json] = [each for each in parser._actions if "--json" in each.option_strings]
    assert (as_json.dest, as_json.const) == ("formatter", "json")
    assert not issubclass(kind, command.List) or kind.nothing.endswith(".")


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_explains_itself(run, name):
    for words in ([*name.split(), "--help"], ["help", *name.split()]):
        status, out, err = run(*words)
        assert (status, err) == (exit_codes.OK, "")
        assert f"usage: nova-scheduler-manage {name} " in out


def test_every_command_belongs_to_a_group_that_help_lists():
    assert {name.split()[0] for name in app.COMMANDS} == set(app.GROUPS) - {"help", "complete"}


def test_db_sync_and_version(manage, run):
    assert manage("db", "version") == {"revision": None}
    assert "no tables" in run("db", "version")[1]
    for _ in range(2):
        assert manage("db", "sync")["revision"] == migration.head()
        assert run("db", "version") == (exit_codes.OK, f"{migration.head()}\n", "")


@pytest.mark.parametrize("option", ["-c", "--sort-column"])
def test_a_column_that_no_table_has(refused, add_host, option):
    add_host("alpha")
    words = (option, "host", option, "Bogus")
    said = refused("host", "list", *words, status=exit_codes.USAGE)
    assert "there is no column 'Bogus'; the columns are: ID, Host, Node" in said


@pytest.mark.parametrize("words", ["db check", "db sync", "service list", "config validate"])
def test_a_file_that_is_no_database_is_named_in_one_line(config_file, run, tmp_path, words):
    pathlib.Path(config_file).write_text(f"[DEFAULT]\nstate_path = {tmp_path}\n")
    (tmp_path / "nova.sqlite").write_bytes(b"\xff" * 4096)
    status, out, err = run(*words.split())
    assert status
    assert f"{tmp_path}/nova.sqlite cannot be used: file is not a database" in out + err
    assert "Traceback" not in err


def test_db_sync_to_an_unknown_revision(refused):
    assert "no-such" in refused("db", "sync", "no-such")


@pytest.mark.parametrize("name", [name for name in app.COMMANDS if name.endswith(" list")])
def test_without_tables_the_command_to_run_is_named(refused, name):
    assert "nova-scheduler-manage db sync" in refused(*name.split())


@pytest.mark.parametrize("is_silent", [False, True], ids=["nobody listens", "nobody answers"])
@pytest.mark.parametrize("words", ["host list", "config validate", "db check", "plan rules"])
def test_a_person_does_not_wait_long_for_a_server_that_is_away(
    config_file, run, monkeypatch, is_silent, words
):
    monkeypatch.setattr("scheduler.db.database.COMMAND_SECONDS", 2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = f"127.0.0.1:{silent.getsockname()[1] if is_silent else 1}/nova"
        url = f"mysql+pymysql://u:secret@{place}?connect_timeout=600&read_timeout=600"
        text = (
            f"[database]\nconnection = {url}\nmax_retries = -1\n[api_database]\nmax_retries = -1\n"
        )
        pathlib.Path(config_file).write_text(text)
        began = time.monotonic()
        status, out, err = run(*words.split())
        assert time.monotonic() - began < 60
    assert status in (exit_codes.FAILURE, exit_codes.CONFIG_DATABASE)
    assert f"mysql+pymysql://u:***@{place}" in out + err
    assert "is it running, and is this its address?" in out + err
    assert "attempts left" not in err


def test_debug_explains_a_failure(run, database):
    status, _out, err = run("--debug", "aggregate", "show", "x")
    assert status == exit_codes.FAILURE
    assert "Traceback" in err


@pytest.mark.parametrize(
    ("output", "read"),
    [
        ("json", lambda text: json.loads(text)[0]["vcpus"]),
        ("yaml", lambda text: yaml.safe_load(text)[0]["vcpus"]),
        ("csv", lambda text: text.splitlines()[1].strip('"')),
        ("value", lambda text: text.strip()),
        ("table", lambda text: text.splitlines()[3].strip("| ")),
    ],
)
def test_output_forms(run, add_host, output, read):
    add_host("alpha")
    status, out, _err = run("host", "list", "-f", output, "-c", "vCPUs")
    assert status == exit_codes.OK
    usage = {"used": 4, "total": 16}
    assert read(out) in ("4/16" if output == "table" else usage, str(usage))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("host show ghost", "ghost"),
        ("service set --enable ghost nova-compute", "nova-compute on ghost"),
        ("aggregate show ghost", "Aggregate ghost"),
        (f"aggregate show {'9' * 5000}", "Aggregate 99999"),
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
def test_what_is_unknown_or_taken_is_named(manage, refused, database, words, part):
    manage("aggregate", "create", "there")
    manage("flavor", "create", "there")
    assert part in refused(*words.split())


def test_what_no_column_holds_is_no_fault_of_the_database(refused, database):
    said = refused("aggregate", "create", "\udcff")
    assert "a value cannot be stored" in said
    assert "[database]" not in said


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("aggregate create x --property ssd", "key=value"),
        ("aggregate set there", "--name"),
        (f"aggregate create {256 * 'x'}", "1 to 255 characters"),
        ("aggregate set there --name=", "1 to 255 characters"),
        ("host list --summary --limit 1", "--limit"),
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
def test_usage_errors(manage, refused, database, words, part):
    manage("aggregate", "create", "there")
    assert part in refused(*words.split(), status=exit_codes.USAGE)
