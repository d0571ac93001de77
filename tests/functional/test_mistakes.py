"""Mistakes of an operator: one line that says where and what, the next step, and the exit status.

Each row is tried on the real programs, with real servers where it is about one.
"""

import json
import os
import socket
from dataclasses import dataclass

import pytest

from scheduler import exit_codes
from tests.world import databases, process
from tests.world.disks import SmallDisk
from tests.world.terminal import DAEMON, FOREIGN, MANAGE, assert_named, say

STUB = "nova-conductor-stub"
CONDUCTOR = f"{STUB} serve"
BOOT = f"{STUB} boot --flavor m1.tiny --image cirros"
COMPUTE = "nova-compute-stub --hosts 1"
CHECK = f"{MANAGE} broker check"
VALIDATE = f"{MANAGE} config validate"
AWAY = "is it running, and is this its address"


@dataclass(frozen=True)
class Mistake:
    """A program, lines of its file after both addresses, names in one printed line, its status."""

    command: str
    lines: str
    names: tuple[str, ...]
    status: int


def _rows(program, status, table):
    """Rows of three lines: what it is called, the lines of the file, the names."""
    rows = table.strip().splitlines()
    for title, lines, names in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        first, _space, rest = lines.strip().partition("] ")
        text = f"{first}]\n{rest}".replace("; ", "\n") if rest else lines.strip()
        yield title, Mistake(program, text, tuple(names.strip().split(" | ")), status)


STARTS = """
an old name with a wrong value
    [DEFAULT] scheduler_max_attempts = 0
    nova.conf:6: [scheduler] max_attempts | >= 1
a filter that nobody knows
    [filter_scheduler] enabled_filters = RamFliter
    nova.conf:6: | RamFliter | [filter_scheduler] enabled_filters | did you mean RamFilter?
a weigher that nobody knows
    [filter_scheduler] weight_classes = nova.scheduler.weights.ram.RAMWeiger
    nova.conf:6: [filter_scheduler] weight_classes | did you mean | RAMWeigher?
a weigher without its path
    [filter_scheduler] weight_classes = RAMWeigher
    nova.conf:6: [filter_scheduler] weight_classes | nova.scheduler.weights.ram.RAMWeigher?
a filter with its path
    [filter_scheduler] enabled_filters = nova.scheduler.filters.ram_filter.RamFilter
    nova.conf:6: | [filter_scheduler] enabled_filters | did you mean RamFilter?
a negative ratio
    [DEFAULT] ram_allocation_ratio = -1
    nova.conf:6: [DEFAULT] ram_allocation_ratio | greater than or equal to 0
a dollar sign in a password
    [DEFAULT] transport_url = rabbit://u:s3$cret@127.0.0.1:1/
    nova.conf:6: [DEFAULT] transport_url: a value has $ | write $$ for a dollar sign
a slash after an at sign in a password
    [DEFAULT] transport_url = rabbit://u:gu@s3cret/@127.0.0.1:1/
    nova.conf:6: [DEFAULT] transport_url: | @ : / ? # in a password are %40 %3A %2F %3F %23
a driver that nobody knows
    [scheduler] driver = filter_schedular
    nova.conf:6: [scheduler] driver | is neither one of | did you mean filter_scheduler?
a driver that wants Nova
    [scheduler] driver = nova.mine.Driver
    nova.conf:6: [scheduler] driver | set [scheduler] nova_compat_imports = true
a database that is away
    [database] connection = mysql+pymysql://u:s3cret@127.0.0.1:1/nova; max_retries = 0
    nova.conf:6: [database] connection: mysql+pymysql://u:***@127.0.0.1:1 | is it running
a PostgreSQL that is away
    [database] connection = postgresql+psycopg://u:s3cret@127.0.0.1:1/nova
    nova.conf:6: [database] connection: postgresql+psycopg://u:***@127.0.0.1:1 | is it running
an address of another machine
    [metrics_endpoint] enabled = true; host = 192.0.2.1
    nova.conf:7: [metrics_endpoint] host | 192.0.2.1 | name an address of this machine
an address of the bus without brackets
    [DEFAULT] transport_url = rabbit://u:s3cret@::1:5672/
    nova.conf:6: [DEFAULT] transport_url: | IPv6 | brackets | [::1]:5672
an address to listen on with brackets
    [metrics_endpoint] enabled = true; host = [::1]
    nova.conf:7: [metrics_endpoint] host: [::1] | leave the brackets out
a folder of recordings that is not there
    [recording] enabled = true; directory = /no/such
    nova.conf:7: [recording] directory: /no/such is not a directory | make it
"""
VALIDATED = """
an alias of devices with half a number
    [pci] alias = {"name": "a", "product_id": "1"}
    nova.conf:6: [pci] alias: product_id = '1' | four hexadecimal digits are needed
an alias of devices with a key that is mistyped
    [pci] alias = {"name": "a", "device_typ": "vdpa"}
    nova.conf:6: [pci] alias: device_typ | did you mean device_type?
a group that is mistyped
    [filter_schedular] host_subset_size = 3
    nova.conf:6: [filter_schedular] host_subset_size | did you mean [filter_scheduler]
an option in the wrong group
    [scheduler] host_subset_size = 3
    nova.conf:6: [scheduler] host_subset_size | did you mean [filter_scheduler] host_subset_size?
"""
ASKED = """
no filters at all
    [filter_scheduler] enabled_filters =
    question: nova.conf:6: [filter_scheduler] enabled_filters: no filter is enabled
far too many workers
    [scheduler] workers = 100000
    question: nova.conf:6: [scheduler] workers: 100000 processes
a time after which every host is down
    [DEFAULT] service_down_time = -5
    question: nova.conf:6: [DEFAULT] service_down_time: | 25 is used
a number below its minimum
    [filter_scheduler] host_subset_size = 0
    question: nova.conf:6: [filter_scheduler] host_subset_size: | 1 is used
a bus that is none
    [DEFAULT] rpc_backend = zmq
    question: nova.conf:6: [DEFAULT] rpc_backend: it has no effect | transport_url
a scheduler of long ago
    [DEFAULT] compute_scheduler_driver = nova.scheduler.simple
    question: nova.conf:6: [DEFAULT] compute_scheduler_driver: it is gone | [scheduler] driver
costs of long ago
    [DEFAULT] least_cost_functions = nova.scheduler.least_cost.noop
    question: nova.conf:6: [DEFAULT] least_cost_functions: it is gone | weighers
"""
LOGGED = """
a log that only the daemon may write
    [DEFAULT] log_dir = /no/such; debug = true
    There are no such compute hosts.
"""
CONDUCTORS = """
a release that the conductor stub does not know
    [upgrade_levels] scheduler = newtn
    nova.conf:6: [upgrade_levels] scheduler | newtn
a conductor stub without a name
    [DEFAULT] host =
    nova.conf:6: [DEFAULT] host
an API database of the conductor stub
    [api_database] connection = sqlite:////no/such
    nova.conf:6: [api_database] connection: the conductor stub works on the one database
"""
COMPUTES = """
a back end that the compute stub does not know
    [DEFAULT] concurrency_backend = twisted
    nova.conf:6: [DEFAULT] concurrency_backend | twisted
a release that the compute stub does not know
    [upgrade_levels] compute = havana
    nova.conf:6: [upgrade_levels] compute | havana
"""
BOOTS = """
a boot on a bus without a conductor
    [DEFAULT] transport_url = fake://
    reaches no conductor
"""
ON_THE_COMMAND_LINE = {
    "no command": (MANAGE, ("no command is given", "--help"), exit_codes.USAGE),
    "a mistyped group": (f"{MANAGE} hots list", ("'hots'", "host?"), exit_codes.USAGE),
    "a mistyped command": (f"{MANAGE} host lst", ("host list?",), exit_codes.USAGE),
    "a group alone": (f"{MANAGE} claims", ("claims audit",), exit_codes.USAGE),
    "a wrong option": (f"{MANAGE} host list --zones x", ("--zones", "--help"), exit_codes.USAGE),
    "a wrong option of a daemon": (f"{DAEMON} --hots", ("--hots", "--help"), exit_codes.USAGE),
    "a time that is none": (f"{BOOT} --timeout nan", ("--timeout", "'nan'"), exit_codes.USAGE),
    "a name that is too long": (f"{BOOT} {'x' * 256}", ("255 characters",), exit_codes.USAGE),
    "a wrong option of the stub": (f"{STUB} list --hots", ("--hots",), exit_codes.USAGE),
    "no hosts of the stub": ("nova-compute-stub --hosts 0", ("hosts",), 1),
    "a part of an option of the stub": ("nova-compute-stub --host 3", ("--host",), 2),
    "a profile that is not there": (f"{COMPUTE} --profile /no/such", ("/no/such: No such",), 1),
    "more failures than builds": (f"{COMPUTE} --fail-rate 2", ("fail",), 1),
    "claims of nobody": (f"{MANAGE} claims release", ("give each CONSUMER",), exit_codes.USAGE),
    "no cases": (f"{MANAGE} evaluate /no/such", ("error: /no/such: No such file",), 1),
    "no workload": (f"{MANAGE} replay .", (".: ", "neither files of a recording"), 1),
    "an option that is not there": (
        f"{MANAGE} config show ram_alocation_ratio",
        ("did you mean ram_allocation_ratio?",),
        exit_codes.FAILURE,
    ),
    "a bus that is away": (f"{MANAGE} state show", ("nova.conf:2", "127.0.0.1:1: ", AWAY), 1),
    "a boot on a bus that is away": (BOOT, ("[DEFAULT] transport_url", "cannot be used"), 1),
    "a bus that is away, explained": (f"{MANAGE} explain x", ("127.0.0.1:1: ", AWAY), 1),
    "a bus that is away, validated": (
        f"{VALIDATE} --broker",
        ("nova.conf:2: [DEFAULT] transport_url: 127.0.0.1:1: Connection refused", AWAY),
        exit_codes.CONFIG_BROKER,
    ),
    "a bus that is away, checked": (
        f"{MANAGE} broker check",
        ("127.0.0.1:1", "unreachable", AWAY),
        exit_codes.BROKER_UNREACHABLE,
    ),
}

MISTAKES = {
    **dict(_rows(DAEMON, exit_codes.CONFIGURATION, STARTS)),
    **dict(_rows(VALIDATE, exit_codes.CONFIG_OPTION, VALIDATED)),
    **dict(_rows(VALIDATE, exit_codes.OK, ASKED)),
    **dict(_rows(f"{MANAGE} host list", exit_codes.OK, LOGGED)),
    **dict(_rows(CONDUCTOR, exit_codes.CONFIGURATION, CONDUCTORS)),
    **dict(_rows(COMPUTE, exit_codes.CONFIGURATION, COMPUTES)),
    **dict(_rows(BOOT, exit_codes.CONFIGURATION, BOOTS)),
    **{
        title: Mistake(command, "", names, status)
        for title, (command, names, status) in ON_THE_COMMAND_LINE.items()
    },
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line_with_the_next_step(tmp_path, tables, mistake):
    status, said = say(tmp_path, mistake.command, mistake.lines, tables)
    assert status == mistake.status, "\n".join(said)
    assert_named(said, mistake.names)


FILES = {
    "no file": (None, ("nova.conf: no such file",)),
    "not UTF-8": (b"[DEFAULT]\nhost = a\n# caf\xe9\n", ("nova.conf:3: byte 0xe9", "UTF-8")),
    "a line without a value": (b"[DEFAULT]\nhost\n", ("nova.conf:2: ", "correct that line")),
    "a BOM": (b"\xef\xbb\xbf[DEFAULT]\n", ("nova.conf:1: it begins with a byte order mark",)),
    "a group without an end": (b"[DEFAULT\n", ("nova.conf:1: ", "must end with ]")),
}


@pytest.mark.parametrize("command", [DAEMON, COMPUTE, f"{MANAGE} host list", f"{STUB} list"])
@pytest.mark.parametrize(("content", "names"), FILES.values(), ids=FILES.keys())
def test_a_file_that_cannot_be_read_is_one_line(tmp_path, command, content, names):
    if content is not None:
        (tmp_path / "nova.conf").write_bytes(content)
    name, *words = command.split()
    done = process.run(name, "--config-file", "nova.conf", *words, folder=tmp_path)
    assert done.returncode == exit_codes.CONFIGURATION, done.stderr
    [line] = done.stderr.splitlines()
    assert [each for each in (f"{name}: error: ", *names) if each not in line] == []
    assert [each for each in FOREIGN if each in line] == []


REFUSED = "[DEFAULT] transport_url: the broker refuses this service: "
STRANGER, NOWHERE = "u:s3cret@{place}%2F", "guest:guest@{place}nowhere"


@pytest.mark.parametrize(
    ("command", "address", "names", "status"),
    [
        (CHECK, STRANGER, ("login refused", "see user"), exit_codes.BROKER_LOGIN),
        (BOOT, STRANGER, ("[DEFAULT] transport_url", "ACCESS_REFUSED"), 1),
        (DAEMON, STRANGER, ("error: nova.conf:", REFUSED, "ACCESS_REFUSED"), 1),
        (CHECK, NOWHERE, ("does it exist",), exit_codes.BROKER_VHOST),
        (DAEMON, NOWHERE, ("error: nova.conf:", REFUSED, "vhost nowhere not found"), 1),
        (CHECK, "guest:guest@[::1]:1/", ("[::1]:1", AWAY), exit_codes.BROKER_UNREACHABLE),
        (CHECK, "guest:guest@{place}%2F?ssl=true", ("TLS failed",), exit_codes.BROKER_TLS),
    ],
)
def test_a_broker_that_cannot_be_used(tmp_path, tables, rabbitmq, command, address, names, status):
    place = rabbitmq.url().rpartition("@")[2].partition("/")[0] + "/"
    url = f"rabbit://{address.format(place=place)}"
    ended, said = say(tmp_path, command, "[scheduler]\nworkers = 1", tables, url)
    assert ended == status, "\n".join(said)
    assert_named(said, names)


@pytest.mark.parametrize(
    ("user", "name", "names"),
    [
        ("nova:s3cret-", "nova", ("nova.conf:4: [database] connection: ", "see user and password")),
        ("{right}", "nowhere", ("nova.conf:4: [database] connection: ", "nowhere")),
    ],
    ids=["wrong password", "no such database"],
)
def test_a_database_that_cannot_be_used(tmp_path, mariadb, user, name, names):
    right, place = mariadb.url(name).removeprefix("mysql+pymysql://").split("@")
    url = f"mysql://{user.format(right=right)}@{place}"
    commands = {f"{MANAGE} host list": 1, f"{MANAGE} claims list": 1, f"{MANAGE} upgrade check": 2}
    for command, expected in {VALIDATE: exit_codes.CONFIG_DATABASE, **commands}.items():
        status, said = say(tmp_path, command, "max_retries = -1", url)
        assert status == expected, "\n".join(said)
        assert_named(said, names)


def test_tables_that_are_behind_or_missing(tmp_path):
    url = f"sqlite:///{tmp_path}/nova.sqlite"
    for command in (f"{MANAGE} host list", COMPUTE, BOOT):
        status, said = say(tmp_path, command, "", url)
        assert status == exit_codes.FAILURE
        assert_named(said, ("error: ", "nova-scheduler-manage db sync"))
    with databases.synced(url):
        databases.query(url, "UPDATE nova_scheduler_version SET version_num = '0001'")
    for command in (DAEMON, f"{MANAGE} host list"):
        status, said = say(tmp_path, command, "", url)
        assert status == exit_codes.FAILURE
        assert_named(said, ("at revision 0001", "upgrade them with: nova-scheduler-manage db sync"))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk needs root")
def test_a_disk_that_is_full(tmp_path):
    with SmallDisk(tmp_path / "disk", 64) as disk:
        disk.fill()
        url = f"sqlite:///{disk.folder}/nova.sqlite"
        status, said = say(tmp_path, f"{MANAGE} db sync", "", url)
    assert status == exit_codes.FAILURE
    assert_named(said, ("nova.conf:4: [database] connection: ",))


def test_a_state_path_that_cannot_be_written(tmp_path):
    text = "[DEFAULT]\ntransport_url = rabbit://u:s3cret@127.0.0.1:1/\nstate_path = /proc/nope\n"
    (tmp_path / "nova.conf").write_text(text)
    commands = {DAEMON: 1, VALIDATE: exit_codes.CONFIG_SURROUNDINGS, f"{MANAGE} db sync": 1}
    for command, expected in commands.items():
        name, *words = command.split()
        done = process.run(name, "--config-file", "nova.conf", *words, folder=tmp_path)
        said = done.stdout + done.stderr
        assert (done.returncode, "Traceback" in said) == (expected, False), said
        assert_named(said.splitlines(), ("nova.conf:3: [DEFAULT] state_path: ", "/proc/nope"))


def test_a_port_that_is_taken(tmp_path, tables):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        lines = f"[metrics_endpoint]\nenabled = true\nhost = 127.0.0.1\nport = {port}"
        status, said = say(tmp_path, DAEMON, lines, tables)
    assert status == exit_codes.CONFIGURATION
    assert_named(said, ("nova.conf:7: [metrics_endpoint] host", str(port), "already in use"))


def test_a_case_that_cannot_be_decided_says_why(tmp_path, tables):
    case = {"name": "a/b", "semantics": "all", "now": "2026-01-01T00:00:00", "request": {}}
    fleet = {"compute_nodes": [], "services": [], "instances": [], "aggregates": []}
    config = {"filter_scheduler": {"enabled_filters": ["RamFliter"]}}
    (tmp_path / "cases").write_text(json.dumps({**case, "fleet": fleet, "config": config}) + "\n")
    status, said = say(tmp_path, f"{MANAGE} evaluate cases", "", tables)
    assert status == exit_codes.FAILURE
    assert_named(said, (f"{MANAGE}: error: a/b: ", "RamFliter"))
    assert_named(said, ('"message": ', '"stage": "startup"', "RamFliter"))
