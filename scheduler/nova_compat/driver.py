"""Nova's ``scheduler.driver``: the base class, and what a driver of Havana's kind does to rows.

Reference page scheduling, section 13.1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import errors, faults, objects
from scheduler.db import instances
from scheduler.db.database import Database
from scheduler.drivers.base import Scheduler
from scheduler.notifications.notifier import Notifier
from scheduler.rpc.client import TOPIC
from scheduler.rpc.transport import get_notification_transport

LOG = logging.getLogger(__name__)

METHOD = "run_instance"
EVENT = f"{TOPIC}.{METHOD}"


def names(conf: cfg.ConfigOpts) -> Mapping[str, Any]:
    """What the module offers in a process that is configured by *conf*."""
    book = InstanceBook(conf)
    return {
        "Scheduler": Scheduler,
        "instance_update_db": book.instance_update_db,
        "handle_schedule_error": book.handle_schedule_error,
    }


class InstanceBook:
    """Changes the rows of instances; connects when it is first needed.

    That is after the workers have been forked.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    @functools.cached_property
    def _database(self) -> Database:
        return Database.from_conf(self._conf)

    @functools.cached_property
    def _notifier(self) -> Notifier:
        transport = get_notification_transport(self._conf)
        return Notifier(transport, f"{TOPIC}.{self._conf.host}")

    def instance_update_db(
        self, context: Any, instance_uuid: str, extra_values: Mapping[str, Any] | None = None
    ) -> objects.Instance:
        """The instance, now without host and node; *extra_values* are further columns to set.

        Raises InstanceNotFound when it is gone.
        """
        del context

        def taken_off_its_host(conn: Connection) -> objects.Instance:
            instances.update(
                conn, instance_uuid, **{"host": None, "node": None, **(extra_values or {})}
            )
            return instances.get(conn, instance_uuid)

        instance: objects.Instance = self._database.write_retrying(taken_off_its_host)
        return instance

    def handle_schedule_error(
        self, context: Any, ex: BaseException, instance_uuid: str, request_spec: dict[str, Any]
    ) -> None:
        """End the build of the instance with *ex*: state ERROR, a fault, a notification."""
        if not isinstance(ex, errors.NoValidHost):
            LOG.error("Exception during %s", EVENT, exc_info=ex)
        LOG.warning("Setting instance %s to ERROR state.", instance_uuid)
        fault = faults.fault_of(ex)
        try:
            self._database.write_retrying(_failed(instance_uuid, fault, self._conf.host))
        except errors.InstanceNotFound:
            LOG.warning("Instance %s disappeared during scheduling", instance_uuid)
            return
        payload = {
            "request_spec": request_spec,
            "instance_properties": request_spec.get("instance_properties", {}),
            "instance_id": instance_uuid,
            "state": "error",
            "method": METHOD,
            "reason": faults.message_of(ex),
        }
        self._notifier.error(context, EVENT, payload)


def _failed(uuid: str, fault: faults.Fault, host: str) -> Callable[[Connection], None]:
    def write(conn: Connection) -> None:
        instances.update(conn, uuid, vm_state="error", task_state=None)
        instances.add_fault(conn, uuid, fault.code, fault.message, fault.details, host)

    return write
