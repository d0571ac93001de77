"""The scheduler's unit, as it is installed, under a real systemd."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from tests.functional import slow_filter
from tests.servers import programs, systemd
from tests.servers.fixtures import require
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.calling import a_request
from tests.world.connection import RawCaller
from tests.world.deployment import render
from tests.world.proxy import Proxy

pytestmark = pytest.mark.systemd

UNIT = "nova-scheduler.service"
STATUS = "2 workers"
WORKERS = 2
LOG = "/var/log/nova/nova-scheduler.log"
RELOADED = "The configuration was read again"
STDERR = "/var/log/nova/stderr"
"""Without a log file the log is there, too."""
#: What an administrator does first, with the files that were installed.
SETUP = f"""
mount --bind {systemd.SHARE}/root/usr/local/lib /usr/local/lib
cp -a {systemd.SHARE}/root/etc/. /etc
systemd-sysusers nova-scheduler.conf
mkdir -p /etc/nova
cp {systemd.SHARE}/nova.conf /etc/nova/
systemd-tmpfiles --create nova-scheduler.conf
"""
#: The unit is the one that was installed; this shortens what takes long.
DROP_IN = f"""
[Unit]
Wants={systemd.JOURNAL_UNIT}
After={systemd.JOURNAL_UNIT}
[Service]
{systemd.python_settings()}
StandardError=append:{STDERR}
WatchdogSec=6
RestartSec=1
"""
PROGRAM = f"""#!{systemd.python()}
import sys
from scheduler.cmd.scheduler import main
sys.exit(main())
"""


@dataclass
class Scene:
    """A machine whose scheduler reaches broker and database through proxies."""

    machine: systemd.Machine
    broker: Proxy
    database: Proxy
    transport_url: str

    def state(self):
        return self.machine.show(UNIT, "ActiveState")

    def pid(self):
        return int(self.machine.show(UNIT, "MainPID"))

    def restarts(self):
        return int(self.machine.show(UNIT, "NRestarts"))

    def log(self):
        return self.machine.run("cat", LOG).stdout

    def describe(self):
        return "\n".join([self.machine.run("systemctl", "status", UNIT).stdout, self.log()])


@pytest.fixture
def scene(rabbitmq, mariadb, mariadb_url):
    """A machine whose scheduler is not started yet, and hosts for it; both proxies are closed."""
    require((*systemd.PROGRAMS, programs.LOGROTATE))
    fleet.install(mariadb_url)
    vhost = rabbitmq.create_vhost()
    with ExitStack() as stack:
        broker = stack.enter_context(Proxy(rabbitmq.port, is_open=False))
        database = stack.enter_context(Proxy(mariadb.port, is_open=False))
        try:
            machine = systemd.Machine(SETUP)
            install(machine)
            write_files(machine, rabbitmq.url(vhost), mariadb_url, broker, database)
            stack.enter_context(machine)
        except systemd.Impossible as reason:
            if os.environ.get("CI", "").lower() == "true":
                pytest.fail(str(reason))
            pytest.skip(str(reason))
        yield Scene(machine, broker, database, rabbitmq.url(vhost))


def install(machine):
    """Install the program and what it needs on a host, as the page on operating says."""
    program = machine.folder / "bin" / "nova-scheduler"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    manage = Path(sys.executable).with_name("nova-scheduler-manage")
    where = ("--root", machine.folder / "root", "--programs", systemd.SHARE / "bin")
    subprocess.run([manage, "install-files", *where], check=True, capture_output=True, timeout=60)


def write_files(machine, broker_url, database_url, broker, database):
    (machine.units / f"{UNIT}.d").mkdir()
    (machine.units / f"{UNIT}.d" / "test.conf").write_text(DROP_IN)
    seen_url = make_url(database_url).set(port=database.port)
    settings = {
        "DEFAULT": {
            "host": "controller",
            "log_file": LOG,
            "use_journal": machine.can_journal,
            "transport_url": re.sub(r":\d+/", f":{broker.port}/", broker_url),
            "service_down_time": 3600,
        },
        "database": {
            "connection": seen_url.render_as_string(hide_password=False),
            "max_retries": 0,
        },
        "scheduler": {"workers": WORKERS},
        "filter_scheduler": {
            "available_filters": [
                "nova.scheduler.filters.all_filters",
                f"{slow_filter.__name__}.PausingFilter",
            ],
            "enabled_filters": "ComputeFilter,RamFilter,PausingFilter",
        },
    }
    (machine.folder / "nova.conf").write_text(render(settings))


@pytest.mark.timeout(300)
def test_the_life_of_a_service(scene):
    machine = scene.machine
    machine.systemctl("start", "--no-block", UNIT)

    # Not ready, however long it takes, before the database and then the broker answer.
    wait_until(lambda: scene.restarts() >= 1, 60, scene.describe)
    assert "[database] connection" in scene.log()
    scene.database.open()
    wait_until(lambda: "Connection failed: " in scene.log(), 60, scene.describe)
    assert scene.state() == "activating"
    scene.broker.open()
    wait_until(lambda: scene.state() == "active", 60, scene.describe)
    wait_until(lambda: machine.show(UNIT, "StatusText") == STATUS, 60, scene.describe)
    assert machine.show(UNIT, "FragmentPath") == str(systemd.INSTALLED_UNITS / UNIT)
    assert_confined(scene)

    reload(scene)
    rotate(scene)
    hang_and_recover(scene)

    machine.systemctl("stop", UNIT)
    assert machine.show(UNIT, "Result") == "success"
    assert machine.show(UNIT, "ExecMainStatus") == "0"
    machine.systemctl("start", UNIT)  # returns when it is ready
    with RawCaller(scene.transport_url) as raw:
        assert raw.call(a_request())["failure"] is None

    if not machine.can_journal:
        pytest.skip("all but the journal: there is no module systemd for this release of Python")
    assert_journal_has_fields(machine)


def assert_journal_has_fields(machine):
    """Decisions are found by request, and everything by logger."""
    entries = machine.journal(UNIT)
    (decision, *_more) = [one for one in entries if "Placement of 1 " in one["MESSAGE"]]
    assert decision["REQUEST_ID"].startswith("req-")
    assert decision["PRIORITY"] == "6"
    assert decision["LOGGER_NAME"].startswith("scheduler.")
    assert {"CODE_FILE", "CODE_LINE", "PROJECT_ID", "_PID"} <= decision.keys()
    assert any("Starting scheduler node" in one["MESSAGE"] for one in entries)


def assert_confined(scene):
    """The process runs as nova, without a way up, and sees no temporary folder of others."""
    status = scene.machine.run("cat", f"/proc/{scene.pid()}/status").stdout
    assert re.search(r"^NoNewPrivs:\s1$", status, re.M)
    assert re.search(r"^Seccomp:\s2$", status, re.M)
    assert re.search(r"^CapBnd:\s0+$", status, re.M)
    nova = scene.machine.run("id", "-u", "nova").stdout.strip()
    assert re.search(rf"^Uid:\s{nova}\s", status, re.M)
    assert nova != "0"


def reload(scene):
    """SIGHUP: systemd sees the reload begin and end, and it is the same process.

    Returns when each worker has logged its own, as nothing else is written after that.
    """
    pid, changed = scene.pid(), scene.machine.show(UNIT, "StateChangeTimestampMonotonic")
    reloads = scene.log().count(RELOADED) + WORKERS
    scene.machine.systemctl("reload", UNIT)
    wait_until(
        lambda: (
            scene.machine.show(UNIT, "StateChangeTimestampMonotonic") != changed
            and scene.state() == "active"
        ),
        60,
        scene.describe,
    )
    assert scene.pid() == pid
    wait_until(lambda: scene.log().count(RELOADED) >= reloads, 60, scene.describe)


def rotate(scene):
    """The log begins anew, and the service goes on writing to it."""
    before = scene.log()
    rules = "/etc/logrotate.d/nova-scheduler"
    done = scene.machine.run("logrotate", "--force", "--state", "/run/logrotate", rules)
    assert (done.returncode, done.stderr) == (0, "")
    assert scene.machine.run("cat", f"{LOG}.1").stdout == before
    assert "Starting scheduler node" not in scene.log()


def hang_and_recover(scene):
    """Over a decision that never ends systemd starts the service again."""
    before = scene.restarts()
    with RawCaller(scene.transport_url) as raw:
        raw.send(a_request(**{slow_filter.COMPUTE_HINT: ["1000"]}))
    wait_until(lambda: scene.restarts() > before and scene.state() == "active", 90, scene.describe)
    log = scene.machine.run("cat", STDERR).stdout
    assert "most recent call first" in log
    assert f"{slow_filter.__name__.split('.')[-1]}.py" in log, "where it hung"
