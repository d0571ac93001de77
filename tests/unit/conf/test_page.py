"""Every option on the page about Nova's: read here, or ignored without a word."""

import pathlib

import pytest
from oslo_config import cfg

from scheduler.conf import check, names, startup
from scheduler.rpc import library_options, transport
from scheduler.rpc.library_options import CONCURRENCY, NOTIFICATIONS, RABBIT

DATA = pathlib.Path(__file__).parents[2] / "data" / "options_of_nova.txt"
PROG = "nova-scheduler"


def listed(kind):
    """Group and name of the options of one section of the list."""
    _before, _, after = DATA.read_text().partition(f"[{kind}]\n")
    lines = after.partition("\n\n")[0].split()
    return [(group, name) for group, _, name in (line.partition(".") for line in lines)]


def filled(path, text):
    """What the daemon makes of a file with that text, apart from connecting."""
    path.write_text(text)
    conf = startup.fill(startup.Source(["--config-file", str(path)], PROG))
    transport.complete(conf)
    library_options.url_from_options(conf)
    return conf


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The names that are read, in every spelling."""
    return names.known(filled(tmp_path_factory.mktemp("page") / "nova.conf", ""))


def test_what_is_read(known):
    assert [row for row in listed("read") if row[1] not in known.get(row[0], ())] == []
    assert len(listed("read")) > 300


def test_what_is_ignored(known):
    assert [row for row in listed("ignored") if row[1] in known.get(row[0], ())] == []
    assert [row for row in listed("ignored") if row[1] not in names.names_of_nova()[row[0]]] == []


@pytest.mark.parametrize("kind", ["ignored", "read"])
def test_no_name_is_taken_for_a_mistake(tmp_path, kind):
    path = tmp_path / "nova.conf"
    groups = {}
    for group, name in listed(kind):
        groups.setdefault(group, []).append(name)
    text = "".join(
        f"[{group}]\n" + "".join(f"{name} = 1\n" for name in found)
        for group, found in groups.items()
    )
    path.write_text(text)
    conf = startup.fill(startup.Source(["--config-file", str(path)], PROG))
    assert list(names.unknown(conf, [str(path)])) == []


REAL = """\
[DEFAULT]
my_ip = 10.0.0.11
state_path = {folder}
lock_path = $state_path/lock
instances_path = $state_path/instances
firewall_driver = nova.virt.firewall.NoopFirewallDriver
use_neutron = true
osapi_compute_workers = 4
dhcpbridge_flagfile = /etc/nova/nova.conf
[libvirt]
virt_type = kvm
[vnc]
vncserver_listen = $my_ip
[glance]
api_servers = http://10.0.0.11:9292
[somebody_elses]
anything = 1
"""


@pytest.fixture
def start(tmp_path, capfd):
    """Begin on a file with a text, as the daemon does; what is logged on standard error."""

    def begin(text):
        path = tmp_path / "nova.conf"
        path.write_text(text)
        startup.parse(startup.Source(["--config-file", str(path)], PROG), cfg.ConfigOpts())
        return capfd.readouterr().err.splitlines()

    return begin


def test_a_real_file_makes_no_noise(start, tmp_path):
    assert start(REAL.format(folder=tmp_path)) == []


HAVANA = "nova.openstack.common.notifier"
DRIVER = f"{NOTIFICATIONS}.driver"
# old group and name, text, current group and name, value
SPELLINGS = [
    (f"{RABBIT}.rabbit_use_ssl", "yes", f"{RABBIT}.ssl", True),
    ("DEFAULT.kombu_ssl_ca_certs", "/ca", f"{RABBIT}.ssl_ca_file", "/ca"),
    ("DEFAULT.rabbit_durable_queues", "1", f"{RABBIT}.amqp_durable_queues", True),
    ("DEFAULT.rpc_conn_pool_size", "7", f"{RABBIT}.rpc_conn_pool_size", 7),
    ("DEFAULT.rabbit_retry_interval", "7", f"{RABBIT}.rabbit_retry_interval", 7),
    ("DEFAULT.rabbit_retry_interval", "0", f"{RABBIT}.rabbit_retry_interval", 1),
    ("DEFAULT.kombu_reconnect_delay", "9", f"{RABBIT}.kombu_reconnect_delay", 4.5),
    ("DEFAULT.notification_driver", f"{HAVANA}.rpc_notifier", DRIVER, ["messaging"]),
    ("rpc_notifier2.topics", "a,b", f"{NOTIFICATIONS}.topics", ["a", "b"]),
    ("DEFAULT.lock_path", "/lock", f"{CONCURRENCY}.lock_path", "/lock"),
]


@pytest.mark.parametrize(("old", "text", "today", "value"), SPELLINGS)
def test_old_spelling_of_a_library(tmp_path, old, text, today, value):
    (old_group, _, old_name), (group, _, name) = old.partition("."), today.partition(".")
    conf = filled(tmp_path / "nova.conf", f"[{old_group}]\n{old_name} = {text}\n")
    assert conf[group][name] == value
    assert (old_group, old_name) in names.spellings(group, names.option(group, name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[cells]\nenable = true\n", "[cells] enable: it has no effect"),
        (
            "[scheduler]\nstanding_results_bytes = 5\n",
            "[scheduler] standing_results_bytes: it has no effect",
        ),
        ("[cells]\nenable = false\n", None),
        ("[DEFAULT]\nscheduler_manager = nova.scheduler.manager.SchedulerManager\n", None),
        ("[DEFAULT]\nscheduler_manager = my.Manager\n", "[DEFAULT] scheduler_manager"),
        ("[conductor]\ntopic = other\n", "[conductor] topic"),
        ("[scheduler]\nmax_attemps = 3\n", "did you mean max_attempts?"),
    ],
)
def test_what_is_said_at_the_start(start, text, said):
    lines = start(text)
    assert len(lines) == (said is not None)
    assert [line for line in lines if said is None or said not in line] == []


ACCEPTING = "accept_options_without_effect = true\n"


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("[DEFAULT]\nscheduler_manager = my.Manager\n", True),
        ("[filter_scheduler]\npci_in_placement = true\n", False),
        ("[conductor]\ntopic = other\n", False),
    ],
)
def test_an_option_of_nova_that_decides_there_and_not_here_stops_the_start(
    tmp_path, text, is_refused
):
    def problems(more):
        conf = filled(tmp_path / "nova.conf", text + more)
        return [str(each) for each in check.problems(conf)]

    with_placement = problems("[scheduler]\nclaims = placement\n")
    assert len(with_placement) == is_refused
    assert all("accept_options_without_effect = true" in each for each in with_placement)
    assert problems("[scheduler]\nclaims = none\n") == []
    assert problems(f"[scheduler]\nclaims = placement\n{ACCEPTING}") == []


def test_values_with_the_paths_of_an_installation(tmp_path):
    text = "[DEFAULT]\nstate_path = $pybasedir/x\ntempdir = $bindir\nhost = $my_block_storage_ip\n"
    conf = filled(tmp_path / "nova.conf", text + "my_ip = 10.0.0.11\n")
    assert conf.state_path.endswith("/x")
    assert conf.tempdir
    assert conf.host == "10.0.0.11"
