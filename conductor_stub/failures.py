"""The ends of tasks that failed: states, faults, notifications (reference page conductor, 6)."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import server_rows
from conductor_stub.request_dicts import legacy_spec_of
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.db.database import Database
from scheduler.notifications import (
    Notifications,
    Payload,
    legacy_failure,
    never_failing,
    request,
)
from scheduler.objects.base import envelope
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

SERVICE = "compute_task"
BUILD = "build_instances"


def compute_task(
    instance_uuid: str, spec: objects.RequestSpec | None, state: str | None, error: BaseException
) -> Payload:
    """ComputeTaskPayload 1.0: a task of the conductor ended with *error*."""
    data = {
        "instance_uuid": instance_uuid,
        "request_spec": None if spec is None else request(spec),
        "state": state,
        "reason": _exception(error),
    }
    return envelope("ComputeTaskPayload", "1.0", data)


def _exception(error: BaseException) -> Payload:
    """ExceptionPayload 1.1; module and function are those in which *error* was raised."""
    frames = list(traceback.walk_tb(error.__traceback__))
    frame = frames[-1][0] if frames else None
    data = {
        "module_name": frame.f_globals.get("__name__", "unknown") if frame else "unknown",
        "function_name": frame.f_code.co_name if frame else "unknown",
        "exception": type(error).__name__,
        "exception_message": errors.message_of(error),
        "traceback": "".join(traceback.format_exception(error)),
    }
    return envelope("ExceptionPayload", "1.1", data)


@dataclass(frozen=True)
class Failures:
    """Tells of failures; *host* is the name that faults carry."""

    database: Database
    notifications: Notifications
    host: str

    def end_build(
        self,
        context: RequestContext,
        instance: objects.Instance,
        error: BaseException,
        legacy_spec: Mapping[str, Any],
        attempts: int,
        spec: objects.RequestSpec | None,
    ) -> None:
        """Record *error* as the end of this build, and set the server to ERROR.

        *spec* is the request as the caller gave it, if it was an object; notifications carry it.
        """

        def change(conn: Connection) -> None:
            server_rows.end_build(conn, instance.uuid, error, self.host, attempts)

        self._end(context, instance.uuid, BUILD, error, change, legacy_spec, spec, "error")

    def end_move(
        self,
        context: RequestContext,
        instance: objects.Instance,
        error: BaseException,
        method: str,
        spec: objects.RequestSpec,
    ) -> None:
        """Tell why nothing came of a move; the server keeps its state."""
        state, uuid = instance.vm_state or "active", instance.uuid

        def change(conn: Connection) -> None:
            instances.update(conn, uuid, vm_state=state, task_state=None)
            server_rows.add_fault(conn, uuid, error, self.host)

        self._end(context, uuid, method, error, change, legacy_spec_of(spec), spec, state)

    def _end(
        self,
        context: RequestContext,
        uuid: str,
        method: str,
        error: BaseException,
        change: Callable[[Connection], None],
        legacy_spec: Mapping[str, Any],
        spec: objects.RequestSpec | None,
        state: str,
    ) -> None:
        """Write the end that *change* makes, and notify; of an instance that is gone, nobody."""
        task, text = f"{SERVICE}.{method}", errors.message_of(error)
        extra = {"instance_uuid": uuid}
        LOG.warning("Failed to %s_%s: %s", SERVICE, method, text, extra=extra)
        if method == BUILD:
            LOG.warning("Setting instance to ERROR state.", extra=extra)
        try:
            self.database.write_retrying(change)
        except errors.InstanceNotFound:
            LOG.debug("Instance %s was deleted meanwhile", uuid)
            return
        legacy, versioned = self.notifications.legacy, self.notifications.versioned
        with never_failing(task):
            if legacy.enabled:
                legacy.error(context, task, legacy_failure(legacy_spec, uuid, method, error, state))
            if versioned.enabled:
                versioned.error(context, f"{task}.error", compute_task(uuid, spec, state, error))
