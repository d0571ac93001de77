"""This project's scheduler where Nova's functional tests start theirs.

``self.start_service('scheduler')`` starts a whole worker: its own configuration file, RPC server
and serializers, readers of the test's databases, client of Placement, notifications.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import os
import tempfile
import threading
from typing import Any, ClassVar
from unittest import mock

import bus
import networks
import nova.conf
import nova.service
import plugged
import settings
from nova import context, exception, objects
from nova.db.api import api as api_database
from nova.scheduler import filters, rpcapi
from nova.tests.functional import fixtures as functional_fixtures
from oslo_config import cfg
from oslo_utils import timeutils

from scheduler.conf import check, startup
from scheduler.daemon.monitoring import Monitoring
from scheduler.daemon.service import BINARY, Service
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.worker_table import WorkerTable
from scheduler.db import url as database_url
from scheduler.hosts.refresh import SteadyClock
from scheduler.rpc import transport

CONF = nova.conf.CONF
#: Changed while the scheduler runs, these need a new one.
_NEED_RESTART = (("placement", "endpoint_override"),)

counts: collections.Counter[str] = collections.Counter()
"""Requests by method, reloads and restarts, since they were last taken."""


class _Running:
    """The databases, Placement and scheduler of the test that runs."""

    cells: ClassVar[Any] = None
    placement: ClassVar[Any] = None
    scheduler: ClassVar[OurService | None] = None


def url_of(manager: Any) -> str:
    return str(manager.writer.get_engine().url.render_as_string(hide_password=False))


class _FilterClasses:
    """Nova's filters by name, which some tests look up to mock them."""

    def __init__(self) -> None:
        found = filters.HostFilterHandler().get_matching_classes(
            CONF.filter_scheduler.available_filters
        )
        self.filter_cls_map = {each.__name__: each for each in found}
        self.enabled_filters: list[Any] = []


class _Manager:
    """Where tests look for the manager of Nova's scheduler."""

    def __init__(self) -> None:
        self.host_manager = _FilterClasses()

    def reset(self) -> None:
        if _Running.scheduler is not None:
            _Running.scheduler.reset()


class OurService:
    """One worker of our scheduler with the methods of ``nova.service.Service``."""

    def __init__(self, host: str) -> None:
        self.host, self.binary, self.topic = host, BINARY, bus.TOPIC
        self.manager = _Manager()
        self.service_ref: Any = None
        self._folder = tempfile.mkdtemp(prefix="nova-functional-")
        self._path = os.path.join(self._folder, "nova.conf")
        self._text = ""
        self._worker: Any = None
        self._monitoring: Any = None
        self._main_url = ""
        self._lock = threading.RLock()

    def start(self) -> None:
        _Running.scheduler = self
        if not self._main_url:  # where Nova's own service would be registered
            self._main_url = url_of(_Running.cells._last_ctxt_mgr)
        self._write()
        source = startup.Source(["--config-file", self._path], BINARY)
        conf = self._filled(source)
        check.validate(conf)
        with _without_signals():
            self._monitoring = Monitoring.from_conf(conf, BINARY)
            table = WorkerTable(1)
            self._worker = Service(conf, Readiness(), table, self._monitoring)
            self._worker.reload_from(source)
            self._worker.start()
        with contextlib.suppress(exception.NotFound):
            self.service_ref = objects.Service.get_by_host_and_binary(
                context.get_admin_context(), self.host, self.binary
            )

    def stop(self, *_args: Any, **_kwargs: Any) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker.wait()
            self._monitoring.close()
            self._worker = None

    def kill(self) -> None:
        self.stop()
        if self.service_ref is not None:
            with contextlib.suppress(exception.NotFound):
                self.service_ref.destroy()

    def wait(self) -> None:
        """Nothing: ``stop`` has waited."""

    def reset(self) -> None:
        if self._worker is not None:
            self._worker.reset()

    def records(self) -> list[Any]:
        return [] if self._worker is None else list(self._worker._manager.recorder.records)

    def take_over_options(self) -> None:
        """Reload what a test has changed since, which Nova sees at once; restart where needed."""
        with self._lock:
            if self._worker is None or not self._write():
                return
            counts["reload"] += 1
            self._worker.reset()
            wanted = self._filled(startup.Source(["--config-file", self._path], BINARY))
            in_force = self._worker.conf_in_force
            if any(wanted[group][name] != in_force[group][name] for group, name in _NEED_RESTART):
                counts["restart"] += 1
                self.stop()
                self.start()

    def _write(self) -> bool:
        """Write the file; False if it is as it was."""
        placement = getattr(_Running.placement, "endpoint", None) or settings.NO_PLACEMENT
        api_url = url_of(api_database.context_manager)
        text = settings.text(self.host, self._folder, api_url, self._main_url, placement)
        is_new, self._text = text != self._text, text
        if is_new:
            with open(self._path, "w", encoding="utf-8") as file:
                file.write(text)
        return is_new

    @staticmethod
    def _filled(source: startup.Source) -> cfg.ConfigOpts:
        transport.set_defaults()
        conf = startup.fill(source)
        transport.complete(conf)
        # The library registers these on the process-wide object, which is Nova's here.
        tracing = importlib.import_module("oslo_messaging._tracing.client")
        conf.register_opts(tracing.oslo_messaging_tracing, group="oslo_messaging_tracing")
        return conf


@contextlib.contextmanager
def _without_signals() -> Any:
    """Restarted by a thread of the test, no handlers can be set."""
    if threading.current_thread() is threading.main_thread():
        yield
    else:
        with mock.patch("signal.signal"):
            yield


def install() -> None:
    """Replace the scheduler of Nova's tests by ours."""
    bus.install(lambda method: counts.update([f"rpc:{method}"]))
    plugged.install()
    networks.install()
    startup.change_log_levels = lambda before, conf: None  # logging is the test's
    # Some tests set the time.
    SteadyClock.__call__ = lambda self: timeutils.utcnow_ts(microsecond=True)
    SteadyClock.check = lambda self: None
    _install_service()
    _install_databases()
    select = rpcapi.SchedulerAPI.select_destinations

    def select_destinations(self, *args, **kwargs):
        ours = _Running.scheduler
        if ours is None:
            return select(self, *args, **kwargs)
        ours.take_over_options()
        try:
            return select(self, *args, **kwargs)
        finally:
            plugged.tell_mocks(ours.records())

    rpcapi.SchedulerAPI.select_destinations = select_destinations


def _install_service() -> None:
    create = nova.service.Service.create.__func__

    def create_ours(cls, host=None, binary=None, **kwargs):
        if binary == BINARY and _Running.cells is not None and _Running.cells._ctxt_mgrs:
            counts["started"] += 1
            return OurService(host)
        return create(cls, host=host, binary=binary, **kwargs)

    nova.service.Service.create = classmethod(create_ours)


def _install_databases() -> None:
    """Learn which databases and which Placement the test has."""
    cell_fixture = importlib.import_module("nova.tests.fixtures").CellDatabases
    begin_cells = cell_fixture.__init__

    def initialize(self, *args, **kwargs):
        begin_cells(self, *args, **kwargs)
        _Running.cells, _Running.placement, _Running.scheduler = self, None, None

    cell_fixture.__init__ = initialize
    set_up_placement = functional_fixtures.PlacementFixture.setUp

    def set_up(self):
        set_up_placement(self)
        _Running.placement = self

    functional_fixtures.PlacementFixture.setUp = set_up
    fill = database_url.fill_template

    def filled(text, *args):
        manager = _Running.cells._ctxt_mgrs.get(text) if _Running.cells else None
        return fill(text, *args) if manager is None else url_of(manager)

    database_url.fill_template = filled
