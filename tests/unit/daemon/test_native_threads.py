"""Native threads beside greenlets: what they do while eventlet's hub does not turn, and logs."""

import contextlib
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SECONDS = 60
WORKER = """
import contextlib, pathlib, sys
from scheduler import concurrency
concurrency.activate(concurrency.EVENTLET)
from scheduler.daemon.health import WorkerHealth
from scheduler.daemon.periodic import ServiceHeartbeat
from scheduler.rpc.in_flight import InFlightRequests
from scheduler.daemon.monitoring import Monitoring
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.watchdog import Watchdog
from scheduler.daemon.worker_table import WorkerTable, Stage
from scheduler.db import migration
from scheduler.db.database import Database
from scheduler.web import server
from tests.builders import a_conf

folder = pathlib.Path(sys.argv[1])
conf = a_conf(DEFAULT__report_interval=1)
database = Database(f"sqlite:///{folder}/nova.sqlite")
migration.sync(database)
listening = server.bind("127.0.0.1", 0, "[x] y")
monitoring, in_flight = Monitoring(listening), InFlightRequests()
watchdog = Watchdog(Readiness(), WorkerTable(1), in_flight, lambda: True)
watchdog.start()
watchdog.enter(Stage.SERVING)
heartbeat = ServiceHeartbeat(conf, database, "nova-scheduler", "scheduler")
heartbeat.register()
with contextlib.ExitStack() as ending:
    health = WorkerHealth(in_flight, 600.0, lambda: watchdog.stage)
    monitoring.serve(health, WorkerTable(), ending)
    heartbeat.start()
    with in_flight.request("select_destinations"):
        print(listening.getsockname()[1], flush=True)
        while not (folder / "decided").exists():
            pass
    heartbeat.stop()
monitoring.close()
"""


def heartbeats(folder):
    with sqlite3.connect(folder / "nova.sqlite") as connection:
        return int(connection.execute("SELECT report_count FROM services").fetchone()[0])


def test_they_go_on_while_a_decision_computes(tmp_path):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(SECONDS)
    environment = {
        **os.environ,
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": str(SECONDS * 1_000_000),
    }
    command = [sys.executable, "-c", WORKER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as worker:
        assert worker.stdout is not None
        port = int(worker.stdout.readline())
        asking = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        asking.request("GET", "/healthz")
        told = json.loads(asking.getresponse().read())
        manager.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while manager.recv(4096):
                pass  # said before the decision began
        manager.settimeout(SECONDS)
        fed = manager.recv(4096)
        while heartbeats(tmp_path) < 2:
            assert worker.poll() is None
        (tmp_path / "decided").touch()
        assert worker.wait(SECONDS) == 0
    assert told["status"] == "pass"
    assert "1 in flight" in str(told["checks"])
    assert b"WATCHDOG=1" in fed


LOGGER = """
import os, signal, sys, time
from scheduler import concurrency
concurrency.activate(concurrency.EVENTLET)
import logging, eventlet
from oslo_config import cfg
from oslo_log import log

conf = cfg.ConfigOpts()
log.register_options(conf)
conf([])
log.setup(conf, "any")
logger = logging.getLogger("any")
"""
LOGGING = """
native, ended, counts = concurrency.native("threading"), False, [0, 0]

def ask():
    while not ended:
        logger.isEnabledFor(logging.DEBUG)
        counts[0] += 1

sys.setswitchinterval(1e-6)
thread = native.Thread(target=ask, daemon=True)
thread.start()
until = time.monotonic() + 1
while time.monotonic() < until:
    logger.setLevel(logging.INFO + counts[1] % 2)
    logger.isEnabledFor(logging.DEBUG)
    counts[1] += 1
    if counts[1] % 100 == 0:
        eventlet.sleep(0)
ended = True
print(thread.join(60), thread.is_alive(), counts)
"""


def test_a_native_thread_may_log_while_levels_change():
    command = [sys.executable, "-W", "ignore", "-c", LOGGER + LOGGING]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert ended.stdout.startswith("None False"), ended.stdout + ended.stderr
    assert not ended.stderr


FORKED = """
if not (child := os.fork()):
    logging.root.handlers[0].acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
signal.alarm(10)
logger.warning("the others go on")
"""


def test_a_process_killed_while_it_logs_keeps_no_other_from_logging():
    command = [sys.executable, "-W", "ignore", "-c", LOGGER + FORKED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert "the others go on" in ended.stdout
