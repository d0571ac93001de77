"""Servers that change their host: resize, cold migration, unshelving, evacuation.

Reference page conductor, section 12.  In each of them hosts are asked for one server, which keeps
its state when there is none.
"""

import contextlib
import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging

from conductor_stub import alternates, request_dicts
from conductor_stub.building import Builder
from conductor_stub.records import HostList, MoveRequest, limits_of, take_first
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

SHELVED_OFFLOADED = "shelved_offloaded"
NO_HOST_FOR_SAME_FLAVOR = "No valid host found for cold migrate"
NO_HOST_FOR_RESIZE = "No valid host found for resize"


@dataclasses.dataclass(frozen=True)
class Mover:
    """Finds the hosts and tells them, or tells of the failure, by the parts of *builder*."""

    builder: Builder

    def resize(self, request: MoveRequest) -> None:
        """Have the instance moved to another host, where it has the flavor requested.

        Raises NoValidHost, or what else went wrong, when nothing has been started; the instance
        is as before then.
        """
        context, instance, flavor = request.context, request.instance, request.flavor
        given = request.filter_properties
        spec = _request(instance, given, request.request_spec)
        spec.flavor = flavor
        try:
            properties = self._counted(instance, spec, given)
            chosen, rest = self._find(context, instance, spec, request.host_list)
        except Exception as error:
            self.builder.failures.end_move(context, instance, error, "migrate_server", spec)
            if isinstance(error, errors.NoValidHost):
                is_same = instance.flavor is not None and instance.flavor.id == flavor.id
                reason = NO_HOST_FOR_SAME_FLAVOR if is_same else NO_HOST_FOR_RESIZE
                raise errors.NoValidHost(reason=reason) from error
            raise
        self.builder.compute.cast(
            context,
            chosen.service_host,
            "prep_resize",
            instance=instance,
            flavor=flavor,
            image=request_dicts.plain(spec.image) or {},
            request_spec=spec,
            legacy_spec=request_dicts.legacy_spec_of(spec),
            filter_properties=request_dicts.populate_filter_properties(properties, chosen),
            node=chosen.nodename,
            clean_shutdown=request.clean_shutdown,
            migration=None,  # no record of it is kept here
            host_list=rest,
        )

    def unshelve(
        self, context: RequestContext, instance: objects.Instance, spec: objects.RequestSpec | None
    ) -> None:
        """Let *instance*, which has no host, run on one again.

        Without a valid host it stays shelved.  Raises InvalidRequest when it is not shelved.
        """
        try:
            if instance.vm_state != SHELVED_OFFLOADED:
                reason = f"an instance that is {instance.vm_state} is on a host"
                raise errors.InvalidRequest(field="instance.vm_state", reason=reason)
            spec = _request(instance, {}, spec)
            properties = self._counted(instance, spec, {})
            chosen, _ = self._find(context, instance, spec, None)
        except Exception as error:
            with contextlib.suppress(errors.InstanceNotFound):
                self.builder.database.write_retrying(
                    lambda conn: instances.update(conn, instance.uuid, task_state=None)
                )
            if not isinstance(error, errors.NoValidHost | errors.UnsupportedPolicyException):
                raise
            LOG.warning(
                "No valid host found for unshelve instance: %s",
                errors.message_of(error),
                extra={"instance_uuid": instance.uuid},
            )
            return
        self.builder.compute.cast(
            context,
            chosen.service_host,
            "unshelve_instance",
            instance=instance,
            image=request_dicts.plain(spec.image) or {},
            filter_properties=request_dicts.populate_filter_properties(properties, chosen),
            node=chosen.nodename,
            request_spec=spec,
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
            spec = _request(instance, {}, spec)
            spec.ignore_hosts = [*(spec.ignore_hosts or ()), *filter(None, [instance.host])]
            try:
                chosen, _ = self._find(context, instance, spec, None)
            except Exception as error:
                self.builder.failures.end_move(context, instance, error, "rebuild_server", spec)
                raise
            host, node, limits = chosen.service_host, chosen.nodename, limits_of(chosen)
        self.builder.compute.cast(
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

    def _counted(
        self, instance: objects.Instance, spec: objects.RequestSpec, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The properties of *spec* with one attempt more than *given* tells of, as it has then."""
        properties = request_dicts.plain(spec.to_legacy_filter_properties_dict())
        if given.get("retry"):
            properties["retry"] = copy.deepcopy(given["retry"])
        properties = request_dicts.populate_retry(
            properties, instance.uuid, self.builder.planner.max_attempts
        )
        if properties.get("retry"):
            spec.retry = objects.SchedulerRetries.from_dict(properties["retry"])
        return properties

    def _find(
        self,
        context: RequestContext,
        instance: objects.Instance,
        spec: objects.RequestSpec,
        host_list: list[objects.Selection] | None,
    ) -> tuple[objects.Selection, HostList]:
        """The host to go to, booked, and the alternates that are left."""
        if host_list is None:
            candidates = self.builder.planner.hosts_for(context, [spec])[0]
            chosen = take_first(candidates, instance.uuid)
        else:
            candidates = list(host_list)
            chosen = self.builder.claims.choose(context.elevated(), spec, instance.uuid, candidates)
        alternates.note_providers(spec, chosen)
        return chosen, candidates


def _request(
    instance: objects.Instance, given: Mapping[str, Any], spec: objects.RequestSpec | None
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
