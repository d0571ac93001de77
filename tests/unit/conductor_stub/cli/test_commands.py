"""The commands on real rows; what goes over the bus is tested with real programs elsewhere."""

import argparse
import io
import json

import pytest

from conductor_stub import booting, conductor_daemon, server_rows
from conductor_stub.booting import Placement
from conductor_stub.cli import boot, servers
from scheduler import errors, exit_codes
from scheduler.db import aggregates, flavors, groups, instances, migration
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from tests.builders import a_conf, put_node

SIZES = {"vcpus": 1, "memory_mb": 1, "local_gb": 1}
NODE = {**SIZES, "hypervisor_type": "fake", "hypervisor_version": 1}
ZONE = "--availability-zone"


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
        put_node(conn, "cmp1", "node1", NODE)
        groups.create(conn, "apart", "anti-affinity")
        request = a_boot(conn, name="vm", count=2, metadata={"role": "web"})
        first, _ = [each.instance for each in booting.create_servers(conn, request)]
        booting.create_servers(conn, a_boot(conn, name="vm-2", count=1))
        instances.update(conn, first.uuid, vm_state="error", task_state=None)
        instances.add_fault(conn, first.uuid, 500, "No valid host was found.", "", "ctl")
        instances.set_system_metadata(conn, first.uuid, "nova_scheduler_attempts", "3")
    yield made
    made.dispose()


@pytest.fixture
def run(database):
    """``run("list", …)`` -> (exit status, standard output)."""

    def call(*words):
        output = io.StringIO()
        program = conductor_daemon.Servers(a_conf(), stdout=output)
        program.databases = Databases(database)
        status = program.run(list(words))
        return status, output.getvalue()

    return call


def test_list_and_show(run):
    status, output = run("list", "--long", "-f", "json")
    first, second, _ = json.loads(output)
    more = {"node", "attempts", "image", "project", "user", "properties", "fault"}
    brief = {each.lower() for each in servers.List.columns}
    assert (status, first.keys()) == (exit_codes.OK, brief | more)
    assert (first["name"], first["state"], first["flavor"]) == ("vm-1", "ERROR", "m1.small")
    assert (first["attempts"], first["fault"]) == (3, "No valid host was found.")
    assert (first["properties"], second["attempts"]) == ({"role": "web"}, 0)
    assert (second["state"], second["host"]) == ("BUILDING (scheduling)", None)
    assert json.loads(run("list", "-f", "json")[1])[0].keys() == brief

    shown = json.loads(run("show", "vm-1", "-f", "json")[1])
    assert (shown["fault_code"], shown["fault_host"]) == (500, "ctl")
    assert shown.items() >= first.items()
    assert shown["memory_mb"] == 2048


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
        (["show", "vm-2"], "vm-2: 2 servers have that name, give the uuid of one"),
    ],
)
def test_a_name_that_means_no_server_is_one_clear_line(run, words, reason, capsys):
    assert run(*words) == (exit_codes.FAILURE, "")
    assert capsys.readouterr().err == f"nova-conductor-stub: error: {reason}\n"


def asked_for(database, *words, **options):
    parser = boot.Boot(argparse.Namespace(NAME="x"), None).get_parser("boot")
    arguments = parser.parse_args(["--flavor", "m1.tiny", "--image", "cirros", *words])
    with database.read() as conn:
        return boot.boot_request(conn, arguments, a_conf(**options))


@pytest.mark.parametrize(
    ("words", "error", "reason"),
    [
        (["--flavor", "nope"], errors.FlavorNotFound, "Flavor nope"),
        (["--group", "nope"], errors.InstanceGroupNotFound, "Instance group nope"),
        ([ZONE, "nope"], errors.InvalidRequest, "there is no zone 'nope'"),
        ([ZONE, "az1:nope"], errors.ComputeHostNotFound, "host nope"),
        ([ZONE, "az1:cmp1:no:such"], errors.ComputeHostNotFound, "cmp1:no:such"),
    ],
)
def test_what_does_not_exist_is_named(database, words, error, reason):
    with pytest.raises(error, match=reason):
        asked_for(database, *words)


@pytest.mark.parametrize(
    ("words", "default_zone", "placement"),
    [
        (["--flavor", "1"], None, Placement()),
        ([], "az1", Placement("az1")),
        ([ZONE, "nova"], None, Placement("nova")),
        ([ZONE, "az1:cmp1:node1"], None, Placement("az1", "cmp1", "node1")),
        ([ZONE, "az1::node1"], None, Placement("az1", None, "node1")),
        ([ZONE, ":cmp1"], "az1", Placement("az1", "cmp1")),
        (["--ignore-host", "x"], None, Placement(ignored_hosts=("x",))),
    ],
)
def test_places_that_exist_are_accepted(database, words, default_zone, placement):
    made = asked_for(database, *words, DEFAULT__default_schedule_zone=default_zone)
    assert (made.placement, made.flavor.name) == (placement, "m1.tiny")


def test_every_option_reaches_the_request(database):
    made = asked_for(
        database,
        *("web", "--count", "3", "--group", "apart", "--project", "p", "--user", "u"),
        *("--hint", "same_host=a", "--hint", "same_host=b", "--hint", "query=[1]"),
        *("--property", "k=v", "--image-property", "hw_disk_bus=scsi"),
    )
    assert (made.name, made.count, made.project_id, made.user_id) == ("web", 3, "p", "u")
    assert made.hints == {"same_host": ["a", "b"], "query": "[1]"}
    assert (made.group.name, made.metadata) == ("apart", {"k": "v"})
    assert made.image["properties"] == {"hw_disk_bus": "scsi"}
