"""Building and deleting instances on one host.  Reference page conductor, section 9."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import random
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import oslo_messaging as messaging
from oslo_log import log as logging

from conductor_stub.compute.clients import Announcer, Clients
from conductor_stub.compute.host_rows import HostRows
from conductor_stub.records import Order
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class BuildRequest:
    """The arguments of one ``build_and_run_instance``.

    ``host_list`` holds the alternates that are left, None from a sender that knows none.
    ``run_again`` is what a scheduler that has sent the order itself is to be told when it cannot
    be carried out, but for the filter properties; without it the conductor is told.
    """

    order: Order
    instance: objects.Instance
    request_spec: objects.RequestSpec | dict[str, Any] | None
    filter_properties: dict[str, Any]
    limits: dict[str, Any]
    host_list: list[objects.Selection] | None
    run_again: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """Duration of builds, the part of them that fails, and how many run at once (0: any).

    Builds that fail are tried on other hosts; those that abort, a part of their own, are not.
    """

    build_seconds: float = 0.0
    fail_rate: float = 0.0
    abort_rate: float = 0.0
    max_concurrent_builds: int = 10


class Builds:
    """The builds and deletions of one host."""

    def __init__(
        self,
        rows: HostRows,
        clients: Clients,
        announcer: Announcer,
        settings: BuildSettings,
        luck: random.Random,
        pause: Callable[[float], None],
    ) -> None:
        self._rows = rows
        self._conductor = clients.conductor
        self._compute = clients.compute
        self._scheduler = clients.older_scheduler
        self._give_back = clients.release
        self._announcer = announcer
        self._settings = settings
        self._luck = luck
        self._pause = pause
        slots = settings.max_concurrent_builds
        self._slots: contextlib.AbstractContextManager[Any] = (
            threading.BoundedSemaphore(slots) if slots else contextlib.nullcontext()
        )

    def build(self, request: BuildRequest) -> None:
        """Claim, spawn and activate the instance, or have another host build it; gone is fine."""
        uuid = request.instance.uuid
        with self._slots:
            try:
                instance = self._spawn(request)
            except errors.InstanceNotFound:
                LOG.debug("Instance %s was deleted while it was to be built", uuid)
                self._give_back(request.order.context, uuid)
                self._rows.audit()
                return
            except Exception as error:
                LOG.info("Instance %s is not built on %s: %s", uuid, self._rows.host, error)
                LOG.debug("The failure of instance %s", uuid, exc_info=True)
                self._give_up(request, error)
                return
        if instance is None:
            LOG.debug("Instance %s is not (any more) to be built on %s", uuid, self._rows.host)
            return
        LOG.info("Instance %s runs on %s", uuid, self._rows.host)
        self._announcer.present(request.order.context, self._rows.host, [instance])

    def _spawn(self, request: BuildRequest) -> objects.Instance | None:
        uuid = request.instance.uuid
        if not self._rows.claim(uuid, request.limits):
            return None
        if self._settings.build_seconds:
            self._pause(self._settings.build_seconds)
        check_image(request.instance, request.order.image)
        draw = self._luck.random()
        if draw < self._settings.fail_rate:
            raise errors.NovaException(f"The hypervisor of {self._rows.host} failed to spawn it")
        if draw < self._settings.fail_rate + self._settings.abort_rate:
            reason = f"{self._rows.host} has no more networks"
            raise errors.BuildAbortException(instance_uuid=uuid, reason=reason)
        return self._rows.activate(uuid)

    def _give_up(self, request: BuildRequest, error: Exception) -> None:
        uuid = request.instance.uuid
        if isinstance(error, errors.BuildAbortException):
            LOG.debug("The build of instance %s would fail anywhere", uuid)
            self._fail(request, error)
            return
        final = errors.RescheduledException(instance_uuid=uuid, reason=str(error))
        final.__cause__ = error
        if not request.filter_properties.get("retry"):
            LOG.debug("The build of instance %s may not be retried", uuid)
            self._fail(request, final)
            return
        released = self._rows.release(uuid)
        if released is None:
            LOG.debug("Instance %s went elsewhere while its build failed", uuid)
            return
        self._give_back(request.order.context, uuid)
        try:
            self._build_elsewhere(request, released, final, reason=str(error))
        except messaging.MessagingException as undelivered:
            LOG.exception("The conductor was not told to build instance %s elsewhere", uuid)
            self._rows.fail(uuid, undelivered)

    def _fail(self, request: BuildRequest, error: Exception) -> None:
        uuid = request.instance.uuid
        self._rows.fail(uuid, error)
        self._give_back(request.order.context, uuid)

    def _build_elsewhere(
        self,
        request: BuildRequest,
        instance: objects.Instance,
        error: Exception,
        reason: str,
    ) -> None:
        properties = copy.deepcopy(request.filter_properties)
        properties["retry"]["exc"] = traceback.format_exception(error)
        properties["retry"]["exc_reason"] = reason
        context, spec = request.order.context, request.request_spec
        if request.run_again is not None:
            self._scheduler.run_instance(context, **request.run_again, filter_properties=properties)
            return
        if spec is None or (isinstance(spec, dict) and request.host_list is None):
            # The sender is older than Queens: its conductor asks the scheduler again.
            self._conductor.build_instances(request.order, [instance], properties)
            return
        self._conductor.rebuild_elsewhere(
            request.order, instance, properties, spec, request.host_list
        )

    def terminate(self, context: RequestContext, uuid: str) -> None:
        """Delete the instance; a host that took it since gets the order instead."""
        elsewhere = self._rows.destroy(uuid)
        if elsewhere is not None:
            LOG.info("Instance %s is on %s now; that host is to delete it", uuid, elsewhere.host)
            self._compute.terminate_instance(context, elsewhere, objects.BlockDeviceMappingList())
            return
        LOG.info("Instance %s is deleted from %s", uuid, self._rows.host)
        self._give_back(context, uuid)
        self._announcer.gone(context, self._rows.host, uuid)


def check_image(instance: objects.Instance, image: Mapping[str, Any]) -> None:
    """Raise BuildAbortException if *instance* is too small for its *image* (0 GB: fits)."""
    needs = (
        ("MB of memory", int(image.get("min_ram") or 0), instance.memory_mb),
        ("GB of disk", int(image.get("min_disk") or 0), instance.root_gb or None),
    )
    for what, needed, given in needs:
        if given is not None and given < needed:
            reason = f"its image needs {needed} {what}, its flavor has {given}"
            raise errors.BuildAbortException(instance_uuid=instance.uuid, reason=reason)
