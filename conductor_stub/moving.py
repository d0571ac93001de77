"""Servers that change their host: resize, cold migration, unshelving, evacuation.

Reference page conductor, section 12.  In each of them hosts are asked for one server, which keeps
its state when there is none.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import claims, planning, request_dicts
from conductor_stub.claims import Claims
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.failure import SERVICE, FailureBranch
from conductor_stub.planning import Planner
from conductor_stub.records import Candidate, MoveRequest
from conductor_stub.stores import Stores
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

SHELVED_OFFLOADED = "shelved_offloaded"
NO_HOST_FOR_SAME_FLAVOR = "No valid host found for cold migrate"
NO_HOST_FOR_RESIZE = "No valid host found for resize"


@dataclasses.dataclass(frozen=True)
class Move:
    """One server on its way: the request for its next host, and what was tried."""

    context: RequestContext
    instance: objects.Instance
    spec: objects.RequestSpec
    properties: dict[str, Any]

    @property
    def image(self) -> dict[str, Any]:
        """The image in plain values."""
        found: dict[str, Any] = request_dicts.plain(self.spec.image) or {}
        return found


@dataclasses.dataclass(frozen=True)
class Mover:
    """Finds the hosts and tells them, or tells of the failure as *failures* does."""

    stores: Stores
    planner: Planner
    compute: ComputeAPI
    claims: Claims
    failures: FailureBranch

    def resize(self, request: MoveRequest) -> None:
        """Have the instance moved to another host, where it has the flavor requested.

        Raises NoValidHost, or what else went wrong, when nothing has been started; the instance
        is as before then.
        """
        context, instance, flavor = request.context, request.instance, request.flavor
        given = request.filter_properties
        spec = self._request(instance, given, request.request_spec)
        spec.flavor = flavor
        try:
            move = self._counted(context, instance, spec, given)
            chosen, rest = self._find(move, request.host_list)
        except Exception as error:
            self._stays(context, instance, "migrate_server", error, spec)
            if isinstance(error, errors.NoValidHost):
                is_same = instance.flavor is not None and instance.flavor.id == flavor.id
                reason = NO_HOST_FOR_SAME_FLAVOR if is_same else NO_HOST_FOR_RESIZE
                raise errors.NoValidHost(reason=reason) from error
            raise
        self.compute.cast(
            context,
            chosen.host,
            "prep_resize",
            instance=instance,
            flavor=flavor,
            image=move.image,
            request_spec=move.spec,
            legacy_spec=request_dicts.legacy_spec_of(move.spec),
            filter_properties=_with_host(move.properties, chosen),
            node=chosen.node,
            clean_shutdown=request.clean_shutdown,
            migration=None,  # no record of it is kept here
            host_list=rest,
        )

    def unshelve(
        self,
        context: RequestContext,
        instance: objects.Instance,
        spec: objects.RequestSpec | None,
    ) -> None:
        """Let *instance*, which has no host, run on one again.

        Without a valid host it stays shelved.  Raises InvalidRequest when it is not shelved.
        """
        if instance.vm_state != SHELVED_OFFLOADED:
            self._set_task(instance, None)
            reason = f"an instance that is {instance.vm_state} is on a host"
            raise errors.InvalidRequest(field="instance.vm_state", reason=reason)
        spec = self._request(instance, {}, spec)
        try:
            move = self._counted(context, instance, spec, {})
            chosen, _ = self._find(move, None)
        except (errors.NoValidHost, errors.UnsupportedPolicyException) as error:
            self._set_task(instance, None)
            LOG.warning(
                "No valid host found for unshelve instance: %s",
                errors.message_of(error),
                extra={"instance_uuid": instance.uuid},
            )
            return
        except Exception:
            self._set_task(instance, None)
            raise
        self.compute.cast(
            context,
            chosen.host,
            "unshelve_instance",
            instance=instance,
            image=move.image,
            filter_properties=_with_host(move.properties, chosen),
            node=chosen.node,
            request_spec=move.spec,
            accel_uuids=[],
        )

    def rebuild(
        self,
        context: RequestContext,
        instance: objects.Instance,
        given: Mapping[str, Any],
        host: str | None,
        spec: objects.RequestSpec | None,
    ) -> None:
        """Have *instance* rebuilt on *host*, or taken over by another; raises NoValidHost."""
        node, limits = None, None
        if host is None:
            spec = self._request(instance, {}, spec)
            spec.ignore_hosts = [*(spec.ignore_hosts or ()), *filter(None, [instance.host])]
            try:
                chosen, _ = self._find(Move(context, instance, spec, {}), None)
            except Exception as error:
                self._stays(context, instance, "rebuild_server", error, spec)
                raise
            host, node, limits = chosen.host, chosen.node, chosen.limits
        self.compute.cast(
            context,
            host,
            "rebuild_instance",
            **given,
            instance=instance,
            migration=None,
            scheduled_node=node,
            limits=limits,
            request_spec=spec,
            accel_uuids=[],
        )

    def _request(
        self,
        instance: objects.Instance,
        given: Mapping[str, Any],
        spec: objects.RequestSpec | None,
    ) -> objects.RequestSpec:
        """The request of the instance for its next host, which nothing forces any more."""
        if spec is None:
            image = {"id": instance.image_ref} if instance.image_ref else {}
            legacy = request_dicts.build_request_spec(image, [instance])
            found = objects.RequestSpec.from_primitives(legacy, given)
        else:
            found = spec.copy()
            found.ignore_hosts = given.get("ignore_hosts") or found.ignore_hosts
        found.force_hosts = found.force_nodes = None
        return found

    def _counted(
        self,
        context: RequestContext,
        instance: objects.Instance,
        spec: objects.RequestSpec,
        given: Mapping[str, Any],
    ) -> Move:
        """The move with one attempt more, counted from what *given* says of earlier ones."""
        properties = request_dicts.plain(spec.to_legacy_filter_properties_dict())
        if given.get("retry"):
            properties["retry"] = copy.deepcopy(given["retry"])
        properties = request_dicts.populate_retry(
            properties, instance.uuid, self.planner.max_attempts
        )
        if properties.get("retry"):
            spec.retry = objects.SchedulerRetries.from_dict(properties["retry"])
        return Move(context, instance, spec, properties)

    def _find(
        self, move: Move, host_list: list[objects.Selection] | None
    ) -> tuple[Candidate, list[objects.Selection]]:
        """The host to go to, booked, and the alternates that are left."""
        if host_list is None:
            candidates = self.planner.hosts_for(move.context, [move.spec])[0]
            if not candidates:
                reason = f"The scheduler named no host for instance {move.instance.uuid}."
                raise errors.NoValidHost(reason=reason)
            position = 0
        else:
            candidates = [planning.candidate_of_selection(each) for each in host_list]
            uuid, elevated = move.instance.uuid, move.context.elevated()
            position = claims.book_first(self.claims.claim, elevated, move.spec, uuid, candidates)
        chosen = candidates[position]
        claims.booked_providers(move.spec, chosen)
        rest = [each.selection for each in candidates[position + 1 :]]
        return chosen, [each for each in rest if each is not None]

    def _stays(
        self,
        context: RequestContext,
        instance: objects.Instance,
        method: str,
        error: Exception,
        spec: objects.RequestSpec,
    ) -> None:
        """The server keeps its state; its user is told why nothing came of the move."""
        extra = {"instance_uuid": instance.uuid}
        LOG.warning("Failed to %s_%s: %s", SERVICE, method, errors.message_of(error), extra=extra)
        state = instance.vm_state or "active"
        fault = errors.Fault.from_error(error)
        host = self.failures.host

        def write(conn: Connection) -> None:
            instances.update(conn, instance.uuid, vm_state=state, task_state=None)
            instances.add_fault(conn, instance.uuid, fault.code, fault.message, fault.details, host)

        try:
            self.stores.of_instance(instance.uuid).write_retrying(write)
        except errors.InstanceNotFound:
            LOG.debug("Instance %s was deleted before its move", instance.uuid)
            return
        legacy, task = request_dicts.legacy_spec_of(spec), f"{SERVICE}.{method}"
        self.failures.notifications.task_failed(
            context, task, instance.uuid, legacy, spec, error, state
        )

    def _set_task(self, instance: objects.Instance, task: str | None) -> None:
        try:
            self.stores.of_instance(instance.uuid).write_retrying(
                lambda conn: instances.update(conn, instance.uuid, task_state=task)
            )
        except errors.InstanceNotFound:
            LOG.debug("Instance %s is gone", instance.uuid)


def _with_host(properties: dict[str, Any], chosen: Candidate) -> dict[str, Any]:
    return request_dicts.populate_filter_properties(
        properties, chosen.host, chosen.node, chosen.limits
    )
