"""The commands on real rows; what goes over the bus is tested with real programs elsewhere."""

from __future__ import annotations

import argparse
import io
import json

import pytest

from conductor_stub import booting, conductor_daemon, server_rows
from conductor_stub.cli import boot, servers
from scheduler import errors, exit_codes
from scheduler.db import aggregates, compute_nodes, flavors, groups, instances, migration
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from tests.unit.conductor_stub import builders

NODE = {
    "vcpus": 1,
    "memory_mb": 1,
    "local_gb": 1,
    "hypervisor_type": "fake",
    "hypervisor_version": 1,
}


TRACEBACK = "Traceback (most recent call last):\n  " + "x" * 2000 + "\nNoValidHost: none\n"


def a_boot(conn, **changes):
    flavor = flavors.get(conn, "name", "m1.small")
    image = booting.image_of("cirros", {})
    return booting.BootRequest(flavor=flavor, image=image, user_id="u", project_id="p", **changes)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    made = Database(f"sqlite:///{tmp_path_factory.mktemp('commands')}/nova.sqlite")
    migration.sync(made)
    with made.write() as conn:
        aggregates.create(conn, "a", {"availability_zone": "az1"}, ["cmp1"])
        compute_nodes.upsert(conn, "cmp1", "node1", NODE)
        groups.create(conn, "apart", "anti-affinity")
        request = a_boot(conn, name="vm", count=2, metadata={"role": "web"})
        first, _ = [each.instance for each in booting.create_servers(conn, request)]
        instances.update(conn, first.uuid, vm_state="error", task_state=None)
        instances.add_fault(conn, first.uuid, 500, "No valid host was found.", TRACEBACK, "ctl")
        instances.set_system_metadata(conn, first.uuid, "nova_scheduler_attempts", "3")
    yield made
    made.dispose()


@pytest.fixture
def run(database):
    """``run("list", …)`` -> (exit status, standard output)."""

    def call(*words):
        output = io.StringIO()
        program = conductor_daemon.Servers(builders.conf(), Databases(database), stdout=output)
        status = program.run(list(words))
        return status, output.getvalue()

    return call


@pytest.mark.parametrize("name", conductor_daemon.COMMANDS)
def test_every_command_explains_itself(run, name, capsys):
    with pytest.raises(SystemExit) as ended:
        run(name, "--help")
    assert ended.value.code == 0
    assert set(conductor_daemon.WORDS) == {"serve", *conductor_daemon.COMMANDS}


def test_list_and_show(run):
    status, output = run("list", "--long", "-f", "json")
    first, second = json.loads(output)
    assert status == exit_codes.OK
    assert first.keys() == set(servers.LONG_COLUMNS)
    assert (first["Name"], first["State"], first["Flavor"]) == ("vm-1", "ERROR", "m1.small")
    assert (first["Attempts"], first["Fault"]) == (3, "No valid host was found.")
    assert (first["Properties"], second["Attempts"]) == ({"role": "web"}, 0)
    assert (second["State"], second["Host"]) == ("BUILDING (scheduling)", None)
    assert json.loads(run("list", "-f", "json")[1])[0].keys() == set(servers.COLUMNS)

    shown = json.loads(run("show", "vm-1", "-f", "json")[1])
    assert (shown["fault_code"], shown["fault_host"]) == (500, "ctl")
    assert (shown["fault_details"], shown["attempts"], shown["memory_mb"]) == (TRACEBACK, 3, 2048)
    _, output = run("show", "vm-1", "-c", "fault_message", "-c", "fault_details")
    assert "NoValidHost: none (last of 3 lines; all of them: -f value)" in output
    assert max(map(len, output.splitlines())) < 100, "as narrow as a terminal"


def test_a_server_that_is_only_asked_for_is_a_server(run, database):
    with database.write() as conn:
        (wanted,) = booting.want_servers(conn, a_boot(conn, name="to-be", count=1))
    shown = json.loads(run("show", "to-be", "-f", "json")[1])
    assert (shown["state"], shown["id"]) == ("BUILDING (scheduling)", wanted.instance_uuid)
    with database.write() as conn:
        server_rows.delete_build_request(conn, wanted.instance_uuid)
    assert run("show", "to-be")[0] == exit_codes.FAILURE


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["show", "nobody"], "Instance nobody could not be found."),
        (["delete", "vm-1", "nobody"], "Instance nobody could not be found."),
    ],
)
def test_an_unknown_server_is_one_clear_line(run, words, reason, capsys):
    status, output = run(*words)

    assert status == exit_codes.FAILURE
    assert output == ""
    assert capsys.readouterr().err == f"nova-conductor-stub: error: {reason}\n"


def _arguments(*words):
    parser = boot.Boot(argparse.Namespace(NAME="x"), None).get_parser("boot")
    return parser.parse_args(["--flavor", "m1.tiny", "--image", "cirros", *words])


@pytest.mark.parametrize(
    ("words", "error", "reason"),
    [
        (["--flavor", "nope"], errors.FlavorNotFound, "Flavor nope"),
        (["--group", "nope"], errors.InstanceGroupNotFound, "Instance group nope"),
        (["--availability-zone", "nope"], errors.InvalidRequest, "there is no zone 'nope'"),
        (["--availability-zone", "az1:nope"], errors.ComputeHostNotFound, "host nope"),
        (["--availability-zone", "az1:cmp1:nope"], errors.ComputeHostNotFound, "cmp1:nope"),
    ],
)
def test_what_does_not_exist_is_named(database, words, error, reason):
    with database.read() as conn, pytest.raises(error, match=reason):
        boot.boot_request(conn, _arguments(*words), builders.conf())


@pytest.mark.parametrize(
    ("words", "default_zone", "placement"),
    [
        (["--flavor", "1"], None, booting.Placement()),
        ([], "az1", booting.Placement("az1")),
        (["--availability-zone", "nova"], None, booting.Placement("nova")),
        (
            ["--availability-zone", "az1:cmp1:node1"],
            None,
            booting.Placement("az1", "cmp1", "node1"),
        ),
        (["--availability-zone", ":cmp1"], "az1", booting.Placement("az1", "cmp1")),
        (["--ignore-host", "x"], None, booting.Placement(ignored_hosts=("x",))),
    ],
)
def test_places_that_exist_are_accepted(database, words, default_zone, placement):
    conf = builders.conf(default_schedule_zone=default_zone)

    with database.read() as conn:
        made = boot.boot_request(conn, _arguments(*words), conf)
    assert (made.placement, made.flavor.name) == (placement, "m1.tiny")


def test_every_option_reaches_the_request(database):
    words = [
        *("web", "--count", "3", "--group", "apart", "--project", "p", "--user", "u"),
        *("--hint", "same_host=a", "--hint", "same_host=b", "--hint", "query=[1]"),
        *("--property", "k=v", "--image-property", "hw_disk_bus=scsi"),
    ]

    with database.read() as conn:
        made = boot.boot_request(conn, _arguments(*words), builders.conf())

    assert (made.name, made.count, made.project_id, made.user_id) == ("web", 3, "p", "u")
    assert made.hints == {"same_host": ["a", "b"], "query": "[1]"}
    assert (made.group.name, made.metadata) == ("apart", {"k": "v"})
    assert made.image["properties"] == {"hw_disk_bus": "scsi"}
    assert made.flavor.name == "m1.tiny"
