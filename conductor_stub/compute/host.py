"""The orders that one compute host carries out, and whom it tells.

Reference page conductor, sections 8.2, 9 and 12.

A move is done in one step: the instance and what it uses change hosts, and the host that it has
left is notified, as if its user had confirmed the move at once.
"""

import contextlib
import dataclasses
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log as logging

from conductor_stub import wire_objects
from conductor_stub.alternates import Claims, PlacementAlternates
from conductor_stub.compute.host_rows import Arrival, Arrived, HostRows
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.records import MoveRequest, Order
from conductor_stub.request_dicts import with_failure
from conductor_stub.rpcapi import ComputeTaskAPI, OlderSchedulerAPI, SchedulerAPI
from scheduler import errors, objects
from scheduler.claims import loading
from scheduler.claims.placement.client import PlacementClient
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

ACTIVE = "active"
RESIZE_PREP = "resize_prep"


class Clients:
    """Conductor, schedulers, other compute hosts, and schedulers of Havana's time.

    *claims* give back what instances have where Placement keeps the books.  A fanout that is lost
    is not worth a failed build: the periodic synchronisation repairs the schedulers' view.
    Nothing is sent where ``[filter_scheduler] track_instance_changes`` is off.
    """

    def __init__(self, transport: messaging.Transport, conf: cfg.ConfigOpts) -> None:
        """Raises ConfigurationError for ``[placement]``."""
        self.conductor = ComputeTaskAPI(transport)
        self.scheduler = SchedulerAPI(transport, conf)
        self.compute = ComputeAPI(transport, conf)
        self.older_scheduler = OlderSchedulerAPI(transport)
        self.claims = Claims()
        if conf.scheduler.claims == loading.PLACEMENT:
            self.claims = PlacementAlternates(PlacementClient.from_conf(conf))
        self._notifies = conf.filter_scheduler.track_instance_changes

    def notify(self, context: RequestContext, method: str, host: str, **arguments: Any) -> None:
        """Notify all schedulers of instances of *host*, in an administrator's name."""
        if not self._notifies:
            return
        try:
            self.scheduler.fanout(context.elevated(), method, host_name=host, **arguments)
        except messaging.MessagingException as error:
            LOG.warning("The schedulers were not notified of the instances of %s: %s", host, error)

    def notify_present(
        self, context: RequestContext, host: str, instances: Sequence[objects.Instance]
    ) -> None:
        """These instances are on *host*: one that has come, or all when the host starts."""
        listed = objects.InstanceList(objects=list(instances))
        self.notify(context, "update_instance_info", host, instance_info=listed)


@dataclasses.dataclass(frozen=True)
class BuildRequest:
    """The arguments of one ``build_and_run_instance``.

    ``host_list`` holds the alternates that are left, None from a sender that knows none.
    ``run_again`` is what is cast to a scheduler that has sent the order itself when it cannot be
    carried out, but for the filter properties; without it the conductor gets a cast.
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


class Host:
    """One host; *luck* decides which builds fail, *pause* waits for a number of seconds."""

    def __init__(
        self,
        rows: HostRows,
        clients: Clients,
        settings: BuildSettings,
        luck: random.Random,
        pause: Callable[[float], None],
    ) -> None:
        self.rows = rows
        self._clients = clients
        self._settings = settings
        self._luck = luck
        self._pause = pause
        slots = settings.max_concurrent_builds
        self._slots: contextlib.AbstractContextManager[Any] = (
            threading.BoundedSemaphore(slots) if slots else contextlib.nullcontext()
        )

    # -- builds and deletions -----------------------------------------------------------------

    def build(self, request: BuildRequest) -> None:
        """Claim, spawn and activate the instance, or have another host build it; gone is fine."""
        uuid, context = request.instance.uuid, request.order.context
        with self._slots:
            try:
                instance = self._spawn(request)
            except errors.InstanceNotFound:
                LOG.debug("Instance %s was deleted while it was to be built", uuid)
                self._clients.claims.release(context, uuid)
                self.rows.audit()
                return
            except Exception as error:
                LOG.info("Instance %s is not built on %s: %s", uuid, self.rows.host, error)
                LOG.debug("The failure of instance %s", uuid, exc_info=True)
                self._give_up_build(request, error)
                return
        if instance is None:
            LOG.debug("Instance %s is not (any more) to be built on %s", uuid, self.rows.host)
            return
        LOG.info("Instance %s runs on %s", uuid, self.rows.host)
        self._clients.notify_present(context, self.rows.host, [instance])

    def _spawn(self, request: BuildRequest) -> objects.Instance | None:
        uuid, settings = request.instance.uuid, self._settings
        if not self.rows.claim(uuid, request.limits):
            return None
        if settings.build_seconds:
            self._pause(settings.build_seconds)
        draw = self._luck.random()
        if draw < settings.fail_rate:
            raise errors.NovaException(f"The hypervisor of {self.rows.host} failed to spawn it")
        if draw < settings.fail_rate + settings.abort_rate:
            reason = f"{self.rows.host} has no more networks"
            raise errors.BuildAbortException(instance_uuid=uuid, reason=reason)
        return self.rows.activate(uuid)

    def _give_up_build(self, request: BuildRequest, error: Exception) -> None:
        uuid, claims = request.instance.uuid, self._clients.claims
        final = error
        if not isinstance(error, errors.BuildAbortException):
            final = errors.RescheduledException(instance_uuid=uuid, reason=str(error))
            final.__cause__ = error
        if final is error or not request.filter_properties.get("retry"):
            LOG.debug("The build of instance %s may not be retried", uuid)
            self.rows.give_up(uuid, final)
            claims.release(request.order.context, uuid)
            return
        released = self.rows.give_up(uuid)
        if released is None:
            LOG.debug("Instance %s went elsewhere while its build failed", uuid)
            return
        claims.release(request.order.context, uuid)
        properties = with_failure(request.filter_properties, final, reason=str(error))
        try:
            self._build_elsewhere(request, released, properties)
        except messaging.MessagingException as undelivered:
            LOG.exception("The conductor was not asked to build instance %s elsewhere", uuid)
            self.rows.give_up(uuid, undelivered)

    def _build_elsewhere(
        self, request: BuildRequest, instance: objects.Instance, properties: dict[str, Any]
    ) -> None:
        order, spec, conductor = request.order, request.request_spec, self._clients.conductor
        if request.run_again is not None:
            self._clients.older_scheduler.run_instance(
                order.context, **request.run_again, filter_properties=properties
            )
        elif spec is None or (isinstance(spec, dict) and request.host_list is None):
            # The sender is older than Queens: its conductor asks the scheduler again.
            conductor.build_instances(order, [instance], properties)
        else:
            conductor.build_instances(
                order, [instance], properties, request_spec=spec, host_lists=[request.host_list]
            )

    def terminate(self, context: RequestContext, uuid: str) -> None:
        """Delete the instance; a host that took it since gets the order instead."""
        elsewhere = self.rows.destroy(uuid)
        if elsewhere is not None:
            LOG.info("Instance %s is on %s now; that host is to delete it", uuid, elsewhere.host)
            host, disks = str(elsewhere.host), wire_objects.BlockDeviceMappingList()
            self._clients.compute.cast(
                context, host, "terminate_instance", instance=elsewhere, bdms=disks
            )
            return
        LOG.info("Instance %s is deleted from %s", uuid, self.rows.host)
        self._clients.claims.release(context, uuid)
        self._tell_gone(context, uuid)

    def _tell_gone(self, context: RequestContext, uuid: str) -> None:
        host = self.rows.host
        self._clients.notify(context, "delete_instance_info", host, instance_uuid=uuid)

    # -- moves --------------------------------------------------------------------------------

    def prep_resize(self, request: MoveRequest) -> None:
        """Take the instance over with its new flavor, or have it moved to another host."""
        wanted = request.request_spec or request.instance
        arrival = Arrival(
            task_state=RESIZE_PREP,
            limits=request.filter_properties.get("limits") or {},
            flavor=request.flavor,
            topology=wanted.numa_topology,
            devices=wanted.pci_requests,
        )
        try:
            arrived = self._arrive(request.context, request.instance.uuid, arrival)
        except Exception as error:
            uuid = request.instance.uuid
            LOG.info("Instance %s does not move to %s: %s", uuid, self.rows.host, error)
            LOG.debug("The refusal of instance %s", uuid, exc_info=True)
            self._give_up_move(request, error)
            return
        instance, source = arrived or (None, None)
        if source not in (None, self.rows.host):
            self._clients.compute.cast(
                request.context, str(source), "confirm_resize", instance=instance, migration=None
            )

    def _give_up_move(self, request: MoveRequest, error: Exception) -> None:
        uuid = request.instance.uuid
        self._leave(request.context, uuid)
        if not request.filter_properties.get("retry"):
            self.rows.turn_away(uuid, RESIZE_PREP, error)
            return
        properties = with_failure(request.filter_properties, error, reason=str(error))
        again = dataclasses.replace(request, filter_properties=properties)
        try:
            self._clients.conductor.move_elsewhere(again)
        except messaging.MessagingException as undelivered:
            LOG.exception("The conductor was not asked to move instance %s elsewhere", uuid)
            self.rows.turn_away(uuid, RESIZE_PREP, undelivered)

    def confirm_resize(self, context: RequestContext, uuid: str) -> None:
        """The instance has left: what it used here is free."""
        self.rows.audit()
        self._leave(context, uuid)
        self._tell_gone(context, uuid)

    def bring_to_life(
        self, context: RequestContext, uuid: str, task_state: str, limits: dict[str, Any]
    ) -> None:
        """Let the instance run here whose task is to be unshelved or rebuilt, wherever it was.

        It stays as it is when it does not fit.
        """
        try:
            self._arrive(context, uuid, Arrival(task_state, limits, vm_state=ACTIVE))
        except Exception as error:
            LOG.exception("Instance %s does not come to %s", uuid, self.rows.host)
            self._leave(context, uuid)
            self.rows.turn_away(uuid, task_state, error)

    def _arrive(self, context: RequestContext, uuid: str, arrival: Arrival) -> Arrived | None:
        try:
            arrived = self.rows.take_over(uuid, arrival)
        except errors.InstanceNotFound:
            arrived = None
        if arrived is None:
            LOG.debug("Instance %s is not on its way (any more)", uuid)
            return None
        LOG.info("Instance %s has come to %s", uuid, self.rows.host)
        self._clients.notify_present(context, self.rows.host, [arrived[0]])
        return arrived

    def _leave(self, context: RequestContext, uuid: str) -> None:
        """The instance is not here: what it has here in Placement is free."""
        if not any(each.uuid == uuid for each in self.rows.present()):
            self._clients.claims.leave(context, uuid, self.rows.audit())
