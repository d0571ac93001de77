"""Rows of instances that builds by the scheduler change (reference page scheduling, 13.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging
from sqlalchemy import Connection

from scheduler import errors, notifications, objects
from scheduler.db import instances
from scheduler.db.database import Database
from scheduler.notifications import Notifier

LOG = logging.getLogger(__name__)

SERVICE = "scheduler"
RUN_INSTANCE = "run_instance"


@dataclass(frozen=True)
class InstanceRows:
    """Changes rows of instances, and notifies of failed builds.

    *database* and *notifier* may connect when they are first called; *host* is named in faults.
    """

    database: Callable[[], Database]
    notifier: Callable[[], Notifier]
    host: str

    def instance_update_db(
        self, context: Any, instance_uuid: str, extra_values: Mapping[str, Any] | None = None
    ) -> objects.Instance:
        """The instance, now on no host, with *extra_values* set; raises InstanceNotFound."""
        del context

        def taken_off_its_host(conn: Connection) -> objects.Instance:
            instances.update(
                conn, instance_uuid, **{"host": None, "node": None, **(extra_values or {})}
            )
            return instances.get(conn, instance_uuid)

        instance: objects.Instance = self.database().write_retrying(taken_off_its_host)
        return instance

    def handle_schedule_error(
        self, context: Any, ex: BaseException, instance_uuid: str, request_spec: Mapping[str, Any]
    ) -> None:
        """End the build of the instance with *ex*: state ERROR, a fault, a notification."""
        if not isinstance(ex, errors.NoValidHost):
            LOG.error("Exception during %s.%s", SERVICE, RUN_INSTANCE, exc_info=ex)
        LOG.warning("Setting instance %s to ERROR state.", instance_uuid)
        self.end(context, ex, instance_uuid, request_spec, RUN_INSTANCE, vm_state="error")

    def end(
        self,
        context: Any,
        ex: BaseException,
        instance_uuid: str,
        request_spec: Mapping[str, Any],
        method: str,
        vm_state: str,
    ) -> None:
        """Record that *method* ended with *ex*, and notify; the instance is left *vm_state*."""
        fault, host = errors.Fault.from_error(ex), self.host

        def write(conn: Connection) -> None:
            instances.update(conn, instance_uuid, vm_state=vm_state, task_state=None)
            instances.add_fault(conn, instance_uuid, fault.code, fault.message, fault.details, host)

        try:
            self.database().write_retrying(write)
        except errors.InstanceNotFound:
            LOG.warning("Instance %s disappeared during scheduling", instance_uuid)
            return
        payload = notifications.legacy_failure(request_spec, instance_uuid, method, ex)
        payload["state"] = vm_state
        self.notifier().error(context, f"{SERVICE}.{method}", payload)

    def join_group(self, instance_uuid: str, group: str) -> None:
        """Note in the system metadata that the instance belongs to *group*."""
        self.database().write_retrying(
            lambda conn: instances.set_system_metadata(conn, instance_uuid, "group", group)
        )

    def group_members(self, group: str) -> dict[str, str | None]:
        """The living instances whose system metadata names *group*, each with its host."""
        with self.database().read() as connection:
            return instances.homes_by_system_metadata(connection, "group", group)
