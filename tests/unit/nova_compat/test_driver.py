"""What a driver of Havana's kind does to the rows of instances."""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Iterator
from types import ModuleType

import pytest
from oslo_config import cfg
from oslo_messaging.notify import _impl_test

from scheduler import errors, objects
from scheduler.db import instances, migration
from scheduler.db.database import Database
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID
from tests.process_options import on_in_process_bus
from tests.waiting import wait_until

CONTEXT = RequestContext("u", "p", overwrite=False)
GHOST = "00000000-0000-4000-a000-0000000000ff"
REQUEST_SPEC = {"instance_properties": {"uuid": OWN_UUID}}


@pytest.fixture
def conf(tmp_path: pathlib.Path) -> Iterator[cfg.ConfigOpts]:
    """The process-wide options, which oslo.messaging insists on, with a database."""
    sections = {
        "database": {"connection": f"sqlite:///{tmp_path}/nova.sqlite"},
        "oslo_messaging_notifications": {"driver": "test"},
    }
    yield on_in_process_bus(tmp_path, sections, host="sched1")
    cfg.CONF.reset()
    _impl_test.reset()


@pytest.fixture
def database(conf: cfg.ConfigOpts) -> Iterator[Database]:
    """The same database, with one instance on a host."""
    database = Database.from_conf(conf)
    migration.sync(database)
    state = {"vm_state": "building", "task_state": "scheduling", "metadata": {}}
    place = {"host": "h1", "node": "n1", "system_metadata": {"group": "web"}}
    with database.write() as connection:
        instances.create(connection, objects.Instance(uuid=OWN_UUID, **place, **state))
    yield database
    database.dispose()


@pytest.fixture
def driver(installed: None, database: Database) -> ModuleType:
    """Nova's ``scheduler.driver``."""
    return importlib.import_module("nova.scheduler.driver")


def read(database: Database) -> objects.Instance:
    with database.read() as connection:
        return instances.get(connection, OWN_UUID)


def test_taken_off_its_host(driver: ModuleType, database: Database) -> None:
    instance = driver.instance_update_db(CONTEXT, OWN_UUID, {"task_state": "scheduled"})

    assert (instance.host, instance.node, instance.task_state) == (None, None, "scheduled")
    assert (instance["uuid"], instance.system_metadata) == (OWN_UUID, {"group": "web"})
    assert (read(database).host, read(database).task_state) == (None, "scheduled")


@pytest.mark.parametrize(
    ("error", "is_logged"), [(errors.NoValidHost(reason="none up"), False), (KeyError("x"), True)]
)
def test_a_build_that_failed(
    driver: ModuleType,
    database: Database,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    is_logged: bool,
) -> None:
    driver.handle_schedule_error(CONTEXT, error, OWN_UUID, REQUEST_SPEC)

    instance = read(database)
    assert (instance.vm_state, instance.task_state) == ("error", None)
    with database.read() as connection:
        fault = instances.latest_fault(connection, OWN_UUID)
    assert fault is not None
    assert (fault.code, fault.message, fault.host) == (500, str(error), "sched1")
    wait_until(lambda: _impl_test.NOTIFICATIONS)
    ((_context, message, priority, _retry),) = _impl_test.NOTIFICATIONS
    assert (message["event_type"], priority) == ("scheduler.run_instance", "ERROR")
    assert message["payload"] == {
        "request_spec": REQUEST_SPEC,
        "instance_properties": {"uuid": OWN_UUID},
        "instance_id": OWN_UUID,
        "state": "error",
        "method": "run_instance",
        "reason": str(error),
    }
    logged = any("Exception during scheduler.run_instance" in text for text in caplog.messages)
    assert logged is is_logged
    assert f"Setting instance {OWN_UUID} to ERROR state." in caplog.messages


def test_instances_that_are_gone(driver: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(errors.InstanceNotFound):
        driver.instance_update_db(CONTEXT, GHOST)
    driver.handle_schedule_error(CONTEXT, errors.NoValidHost(reason=""), GHOST, {})

    assert f"Instance {GHOST} disappeared during scheduling" in caplog.messages
    assert _impl_test.NOTIFICATIONS == []
