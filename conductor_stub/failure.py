"""The end of a failed build: the server in ERROR, with its fault and a notification.

Reference page conductor, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import build_requests
from conductor_stub.records import Order
from conductor_stub.stores import ATTEMPTS_KEY, Stores
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.notifications.notifier import Notifications

LOG = logging.getLogger(__name__)

SERVICE = "compute_task"
METHOD = "build_instances"


def record(
    api: Connection,
    cell: Connection,
    uuid: str,
    error: BaseException,
    host: str,
    attempts: int,
) -> None:
    """Write *error* as the end of the build; raises InstanceNotFound when it is gone."""
    fault = errors.Fault.from_error(error)
    instances.update(cell, uuid, vm_state="error", task_state=None)
    instances.add_fault(cell, uuid, fault.code, fault.message, fault.details, host)
    instances.set_system_metadata(cell, uuid, ATTEMPTS_KEY, str(attempts))
    instances.set_system_metadata(cell, uuid, "network_allocated", "False")
    try:
        build_requests.destroy(api, uuid)
    except errors.BuildRequestNotFound:
        LOG.debug("The build request of instance %s is gone already", uuid)


@dataclass(frozen=True)
class FailureBranch:
    """Sets servers to ERROR; *host* is the name that the fault and the notification carry."""

    stores: Stores
    notifications: Notifications
    host: str

    def fail(
        self,
        order: Order,
        instance: objects.Instance,
        error: BaseException,
        legacy_spec: Mapping[str, Any],
        attempts: int,
        spec: objects.RequestSpec | None = None,
    ) -> None:
        """Record *error* as the end of this build.

        *spec* is the request as the caller gave it, if it was an object; notifications carry it.
        An instance that is gone is left alone: there is nobody to tell.
        """
        extra = {"instance_uuid": instance.uuid}
        LOG.warning("Failed to %s_%s: %s", SERVICE, METHOD, errors.message_of(error), extra=extra)
        LOG.warning("Setting instance to ERROR state.", extra=extra)
        try:
            self.stores.write(
                self.stores.of_instance(instance.uuid),
                lambda api, cell: record(api, cell, instance.uuid, error, self.host, attempts),
            )
        except errors.InstanceNotFound:
            LOG.debug("Instance %s was deleted during its build", instance.uuid)
            return
        self.notifications.task_failed(
            order.context, f"{SERVICE}.{METHOD}", instance.uuid, legacy_spec, spec, error
        )
