"""The service object on the bus inside this process and a SQLite file."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import oslo_messaging
import pytest
from oslo_config import cfg

from conductor_stub.rpcapi import SchedulerAPI
from scheduler import conf as project_options
from scheduler import errors
from scheduler.daemon.monitoring import Monitoring
from scheduler.daemon.service import Service
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.worker_table import WorkerTable
from scheduler.db import migration
from scheduler.db.database import Database
from scheduler.rpc import transport as bus
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID, a_request

CONTEXT = RequestContext("u", "p", overwrite=False)


@pytest.fixture
def conf(tmp_path: pathlib.Path) -> Iterator[cfg.ConfigOpts]:
    """The process-wide options with a database of the test's own, tables made."""
    url = f"sqlite:///{tmp_path}/nova.sqlite"
    path = tmp_path / "nova.conf"
    path.write_text(
        "[DEFAULT]\nhost = sched1\ntransport_url = fake://\nperiodic_fuzzy_delay = 0\n"
        f"[database]\nconnection = {url}\n"
    )
    project_options.register_all(cfg.CONF)
    cfg.CONF(["--config-file", str(path)], project="nova", default_config_dirs=[])
    migration.sync(Database(url))
    yield cfg.CONF
    cfg.CONF.clear_override("driver", group="scheduler")
    cfg.CONF.reset()


class Announcements(Readiness):
    """Counts instead of telling systemd."""

    def __init__(self) -> None:
        super().__init__({})
        self.count = 0

    def announce(self, *more: str) -> None:
        self.count += 1


def a_service(conf: cfg.ConfigOpts) -> tuple[Service, Announcements, WorkerTable]:
    announcements, table = Announcements(), WorkerTable()
    return Service(conf, announcements, table, Monitoring()), announcements, table


def test_life(conf: cfg.ConfigOpts, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    service, announcements, table = a_service(conf)
    service.start()
    api = SchedulerAPI(bus.get_transport(conf), conf)

    assert announcements.count == 1
    assert api.ping(CONTEXT, 1, timeout_seconds=60) == {"service": "scheduler", "arg": 1}
    with pytest.raises(errors.NoValidHost):
        api.select_destinations(CONTEXT, a_request(), [OWN_UUID])

    service.reset()
    service.stop()
    service.stop()
    service.wait()
    assert not table.has_failed
    with pytest.raises(oslo_messaging.MessagingTimeout):
        api.ping(CONTEXT, 1, timeout_seconds=0.2)
    assert "Starting scheduler node (version " in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
