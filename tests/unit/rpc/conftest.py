"""An in-process bus with a scheduler on it whose driver is the test's own."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import oslo_messaging
import pytest
from oslo_config import cfg

from scheduler.idempotency import ReplyCache
from scheduler.rpc import transport as bus
from scheduler.rpc.endpoints import BaseAPI, SchedulerEndpoint
from scheduler.rpc.server import Server
from tests.process_options import on_in_process_bus
from tests.unit.rpc.fakes import RecordingDriver, RecordingManager


@pytest.fixture
def conf(tmp_path: pathlib.Path) -> Iterator[cfg.ConfigOpts]:
    """The process-wide options, with the in-process bus."""
    yield on_in_process_bus(tmp_path)
    cfg.CONF.clear_override("scheduler", group="upgrade_levels")
    cfg.CONF.reset()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingManager]:
    """A scheduler named ``sched1`` that serves on the bus inside this process.

    One for all tests of a module, because stopping a server takes a second.
    """
    conf = on_in_process_bus(tmp_path_factory.mktemp("conf"))
    transport = bus.get_transport(conf)
    manager = RecordingManager(conf, RecordingDriver())
    endpoints = [SchedulerEndpoint(manager), BaseAPI("scheduler")]
    server = Server(transport, "scheduler", "sched1", endpoints)
    server.start()
    yield manager
    server.stop()
    server.wait()
    transport.cleanup()


@pytest.fixture
def driver(scheduler: RecordingManager) -> RecordingDriver:
    """The driver of that scheduler, as if nothing had happened yet."""
    scheduler.replies = ReplyCache.from_conf(cfg.CONF)
    recording: RecordingDriver = scheduler.driver
    recording.forget()
    return recording


@pytest.fixture
def transport(conf: cfg.ConfigOpts) -> oslo_messaging.transport.RPCTransport:
    """The bus inside this process, for callers."""
    return bus.get_transport(conf)


@pytest.fixture
def wire() -> pathlib.Path:
    """The folder of the recorded messages."""
    return pathlib.Path(__file__).parents[2] / "data" / "wire"
