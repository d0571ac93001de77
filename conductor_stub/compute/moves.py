"""Instances that come to a host, or leave it, while they exist.  Page conductor, 8.2, 9 and 12.

A move is done in one step: the instance and what it uses change hosts, and the host that it has
left is told so, as if its user had confirmed the move at once.
"""

from __future__ import annotations

import copy
import dataclasses
import traceback
from typing import Any

import oslo_messaging as messaging
from oslo_log import log as logging

from conductor_stub.compute.clients import Announcer, Clients
from conductor_stub.compute.host_rows import Arrival, Arrived, HostRows
from conductor_stub.records import MoveRequest
from scheduler import errors
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

ACTIVE = "active"
RESIZE_PREP = "resize_prep"
UNSHELVING = "unshelving"
REBUILDING = "rebuilding"


class Moves:
    """Instances that come to one host, or leave it, while they exist."""

    def __init__(self, rows: HostRows, clients: Clients, announcer: Announcer) -> None:
        self._rows = rows
        self._conductor = clients.conductor
        self._compute = clients.compute
        self._leave_node = clients.leave
        self._announcer = announcer

    def prep_resize(self, request: MoveRequest) -> None:
        """Take the instance over with its new flavor, or have it moved to another host."""
        spec = request.request_spec
        arrival = Arrival(
            task_state=RESIZE_PREP,
            limits=request.filter_properties.get("limits") or {},
            flavor=request.flavor,
            topology=spec.numa_topology if spec is not None else request.instance.numa_topology,
        )
        try:
            arrived = self._arrive(request.context, request.instance.uuid, arrival)
        except Exception as error:
            uuid = request.instance.uuid
            LOG.info("Instance %s does not move to %s: %s", uuid, self._rows.host, error)
            LOG.debug("The refusal of instance %s", uuid, exc_info=True)
            self._give_up(request, error)
            return
        if arrived is not None and arrived.came_from not in (None, self._rows.host):
            source = str(arrived.came_from)
            self._compute.cast(
                request.context,
                source,
                "confirm_resize",
                instance=arrived.instance,
                migration=None,
            )

    def confirm_resize(self, context: RequestContext, uuid: str) -> None:
        """The instance has left: what it used here is free."""
        self._rows.audit()
        self._leave(context, uuid)
        self._announcer.gone(context, self._rows.host, uuid)

    def unshelve(self, context: RequestContext, uuid: str, limits: dict[str, Any]) -> None:
        """Let the shelved instance run here; it stays shelved when it does not fit."""
        arrival = Arrival(UNSHELVING, limits, vm_state=ACTIVE)
        self._arrive_or_stay(context, uuid, arrival)

    def rebuild(self, context: RequestContext, uuid: str, limits: dict[str, Any]) -> None:
        """Build the instance anew here, where it was or where it comes from a dead host."""
        arrival = Arrival(REBUILDING, limits, vm_state=ACTIVE)
        self._arrive_or_stay(context, uuid, arrival)

    def _arrive_or_stay(self, context: RequestContext, uuid: str, arrival: Arrival) -> None:
        try:
            self._arrive(context, uuid, arrival)
        except Exception as error:
            LOG.exception("Instance %s does not come to %s", uuid, self._rows.host)
            self._leave(context, uuid)
            self._rows.turn_away(uuid, arrival.task_state, error)

    def _arrive(self, context: RequestContext, uuid: str, arrival: Arrival) -> Arrived | None:
        try:
            arrived = self._rows.take_over(uuid, arrival)
        except errors.InstanceNotFound:
            LOG.debug("Instance %s was deleted on its way", uuid)
            return None
        if arrived is None:
            LOG.debug("Instance %s is not on its way (any more)", uuid)
            return None
        LOG.info("Instance %s has come to %s", uuid, self._rows.host)
        self._announcer.present(context, self._rows.host, [arrived.instance])
        return arrived

    def _leave(self, context: RequestContext, uuid: str) -> None:
        """The instance is not here: what it has here in Placement is free."""
        if self._leave_node is not None and not self._rows.has(uuid):
            self._leave_node(context, uuid, self._rows.node_uuid())

    def _give_up(self, request: MoveRequest, error: Exception) -> None:
        uuid = request.instance.uuid
        self._leave(request.context, uuid)
        if not request.filter_properties.get("retry"):
            self._rows.turn_away(uuid, RESIZE_PREP, error)
            return
        properties = copy.deepcopy(request.filter_properties)
        properties["retry"]["exc"] = traceback.format_exception(error)
        properties["retry"]["exc_reason"] = str(error)
        again = dataclasses.replace(request, filter_properties=properties)
        try:
            self._conductor.move_elsewhere(again)
        except messaging.MessagingException as undelivered:
            LOG.exception("The conductor was not told to move instance %s elsewhere", uuid)
            self._rows.turn_away(uuid, RESIZE_PREP, undelivered)
