"""What happens to a server that cannot be built: ERROR, with everything around it tidied up.

Reference page conductor, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import hooks
from conductor_stub.hooks import BuildHooks
from conductor_stub.records import Order
from conductor_stub.stores import Stores
from scheduler import errors, faults, objects
from scheduler.db import build_requests, instances
from scheduler.notifications.notifications import Notifications
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

SERVICE = "compute_task"
METHOD = "build_instances"
ATTEMPTS_KEY = "nova_scheduler_attempts"
"""The key of the system metadata under which the number of attempts is kept for operators."""


def record(
    api: Connection,
    cell: Connection,
    uuid: str,
    error: BaseException,
    host: str,
    attempts: int,
) -> None:
    """Write that the build of the instance has ended with *error*, as *host* saw it.

    Raises InstanceNotFound when the instance is gone.
    """
    fault = faults.fault_of(error)
    instances.update(cell, uuid, vm_state="error", task_state=None)
    instances.add_fault(cell, uuid, fault.code, fault.message, fault.details, host)
    instances.set_system_metadata(cell, uuid, ATTEMPTS_KEY, str(attempts))
    try:
        build_requests.destroy(api, uuid)
    except errors.BuildRequestNotFound:
        LOG.debug("The build request of instance %s is gone already", uuid)


@dataclass(frozen=True)
class FailureBranch:
    """Sets servers to ERROR; *host* is the name that the fault and the notification carry."""

    stores: Stores
    notifications: Notifications
    hooks: BuildHooks
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
        LOG.warning("Failed to %s_%s: %s", SERVICE, METHOD, faults.message_of(error), extra=extra)
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
        self._give_back_networks(order.context, instance, order.requested_networks)
        self._give_back_accelerators(order.context, instance)

    def _give_back_networks(
        self,
        context: RequestContext,
        instance: objects.Instance,
        requested: objects.NetworkRequestList | None,
    ) -> None:
        if requested is None or not requested.no_allocate:
            try:
                self.hooks.deallocate_networks(context, instance)
            except Exception:
                LOG.exception("Failed to deallocate networks", extra={"instance": instance.uuid})
                return
        self.stores.of_instance(instance.uuid).write_retrying(
            lambda conn: instances.set_system_metadata(
                conn, instance.uuid, "network_allocated", "False"
            )
        )

    def _give_back_accelerators(self, context: RequestContext, instance: objects.Instance) -> None:
        if not hooks.device_profile(instance.flavor):
            return
        try:
            self.hooks.delete_accelerators(context, instance)
        except Exception:
            LOG.exception(
                "Failed to delete accelerator requests", extra={"instance": instance.uuid}
            )
