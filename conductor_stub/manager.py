"""``ComputeTaskManager``: the conductor's RPC methods (reference page conductor, sections 2 to 6).

``build_instances`` has one form here; what older and newer releases do differently follows from
what they send and from what their peers understand:

* No ``host_lists``, or null (a first build; a Newton compute after a failed one): the scheduler is
  asked, for Selections with alternates unless ``[upgrade_levels] scheduler`` keeps it to the dict
  replies of its older interface.  A list: a reschedule; its alternates are claimed one after the
  other and the scheduler is not asked.
* ``request_spec`` null: the request is made from the image and the first instance.  Given, it is
  the request; its provider mapping goes on to the compute.
* ``[upgrade_levels] compute`` below 5.0: the cast is Newton's (4.0, or 4.19 with alternates), with
  the request as a dict, and the instance keeps the availability zone that was asked for, because
  a Newton compute's reschedule makes its request from the instance again.  Otherwise the cast is
  6.0, 5.11 or 5.0, and the zone of the chosen host is written to the instance.

Unlike any Nova, one instance or build request that is gone does not stop the others of its batch
(all of reference page conductor's recommendations are followed).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_log import log as logging

from conductor_stub import request_specs, retry
from conductor_stub.building import Builder
from conductor_stub.conductor_rpcapi import NAMESPACE
from conductor_stub.failure import FailureBranch
from conductor_stub.first_builds import FirstBuilds, NewServer
from conductor_stub.moving import Mover
from conductor_stub.planning import GivenHostLists, Planner
from conductor_stub.records import Order, RebuildOrder, network_requests
from conductor_stub.stores import Stores
from scheduler import errors, objects
from scheduler.db import flavors
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)


class ComputeTaskManager:
    """The endpoint of topic ``conductor``, namespace ``compute_task``."""

    target = messaging.Target(namespace=NAMESPACE, version="1.26")

    def __init__(
        self,
        stores: Stores,
        planner: Planner,
        builder: Builder,
        failures: FailureBranch,
    ) -> None:
        self._stores = stores
        self._planner = planner
        self._builder = builder
        self._failures = failures
        self._first_builds = FirstBuilds(planner, builder, failures)
        self._mover = Mover(
            stores,
            planner,
            builder.compute,
            builder.claims,
            failures.notifications,
            failures.host,
        )

    @messaging.expose
    def build_instances(  # the wire names these arguments, hence so many
        self,
        context: RequestContext,
        instances: Sequence[objects.Instance],
        image: dict[str, Any] | None,
        filter_properties: dict[str, Any],
        admin_password: str | None,
        injected_files: list[Any],
        requested_networks: Any,
        security_groups: list[str],
        block_device_mapping: Any = None,  # noqa: ARG002  (dropped in 1.7; read from the rows)
        legacy_bdm: bool = True,  # noqa: ARG002  (the same)
        request_spec: objects.RequestSpec | dict[str, Any] | None = None,
        host_lists: GivenHostLists | None = None,
    ) -> None:
        """Find hosts for *instances* and have them built there; what cannot be ends in ERROR."""
        order = Order(
            context=context,
            image=image or {},
            admin_password=admin_password,
            injected_files=injected_files,
            requested_networks=network_requests(requested_networks),
            security_groups=security_groups,
        )
        self._run(order, list(instances), filter_properties, request_spec, host_lists)

    @messaging.expose
    def schedule_and_build_instances(  # the wire names these arguments, hence so many
        self,
        context: RequestContext,
        build_requests: Sequence[objects.BuildRequest],
        request_specs: Sequence[objects.RequestSpec],
        image: dict[str, Any] | None,
        admin_password: str | None,
        injected_files: list[Any],
        requested_networks: Any,
        block_device_mapping: objects.BlockDeviceMappingList | None = None,
        tags: Any = None,  # noqa: ARG002  (there is no table for them)
    ) -> None:
        """Make the servers of *build_requests* where hosts are found for them, and build them."""
        order = Order(
            context=context,
            image=image or {},
            admin_password=admin_password,
            injected_files=injected_files,
            requested_networks=network_requests(requested_networks),
            security_groups=_security_groups(request_specs),
        )
        servers = [
            NewServer(_with_disks(wanted, block_device_mapping), spec)
            for wanted, spec in zip(build_requests, request_specs, strict=True)
        ]
        self._first_builds.run(order, servers)

    @messaging.expose
    @messaging.expected_exceptions(errors.NovaException)
    def migrate_server(  # the wire names these arguments, hence so many
        self,
        context: RequestContext,
        instance: objects.Instance,
        scheduler_hint: dict[str, Any] | None,
        live: bool,
        rebuild: bool,
        flavor: objects.Flavor | None,
        block_migration: Any,  # noqa: ARG002  (of live migrations)
        disk_over_commit: Any,  # noqa: ARG002  (of live migrations)
        reservations: list[str] | None = None,  # noqa: ARG002  (quota is the API's)
        clean_shutdown: bool = True,
        request_spec: objects.RequestSpec | None = None,
        host_list: list[objects.Selection] | None = None,
    ) -> None:
        """Move *instance* to another host, with *flavor* from then on (its own: a migration)."""
        if live or rebuild or flavor is None:
            reason = "only resizes and cold migrations are done here"
            raise errors.InvalidRequest(field="migrate_server", reason=reason)
        properties = (scheduler_hint or {}).get("filter_properties") or {}
        self._mover.resize(
            context, instance, flavor, properties, request_spec, host_list, clean_shutdown
        )

    @messaging.expose
    @messaging.expected_exceptions(errors.NovaException)
    def unshelve_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        request_spec: objects.RequestSpec | None = None,
    ) -> None:
        """Let *instance*, which is shelved and without a host, run again."""
        self._mover.unshelve(context, instance, request_spec)

    @messaging.expose
    @messaging.expected_exceptions(errors.NovaException)
    def rebuild_instance(  # the wire names these arguments, hence so many
        self,
        context: RequestContext,
        instance: objects.Instance,
        orig_image_ref: str | None,
        image_ref: str | None,
        injected_files: list[Any],
        new_pass: str | None,
        orig_sys_metadata: dict[str, Any] | None,
        bdms: Any,
        recreate: bool,
        on_shared_storage: bool | None,
        preserve_ephemeral: bool = False,
        host: str | None = None,
        request_spec: objects.RequestSpec | None = None,
        reimage_boot_volume: bool | None = None,  # noqa: ARG002  (there are no volumes)
        target_state: str | None = None,  # noqa: ARG002  (a server runs afterwards)
    ) -> None:
        """Rebuild *instance* on *host*, or let another host than its own take it over."""
        order = RebuildOrder(
            image_ref=image_ref,
            orig_image_ref=orig_image_ref,
            injected_files=injected_files,
            new_pass=new_pass,
            orig_sys_metadata=orig_sys_metadata,
            bdms=bdms,
            recreate=recreate,
            on_shared_storage=on_shared_storage,
            preserve_ephemeral=preserve_ephemeral,
        )
        self._mover.rebuild(context, instance, order, host, request_spec)

    def _run(
        self,
        order: Order,
        instances: list[objects.Instance],
        properties: Mapping[str, Any],
        request_spec: objects.RequestSpec | dict[str, Any] | None,
        host_lists: GivenHostLists | None,
    ) -> None:
        legacy_spec: dict[str, Any] = {}
        spec = request_spec if isinstance(request_spec, objects.RequestSpec) else None
        try:
            properties = self._with_flavor(properties)
            legacy_spec = request_specs.legacy_spec(order.image, instances, request_spec)
            plan = self._planner.plan(order, instances, properties, legacy_spec, spec, host_lists)
        except Exception as error:
            LOG.debug("No hosts for %d instance(s)", len(instances), exc_info=True)
            attempts = retry.attempts(properties)
            for instance in instances:
                self._failures.fail(order, instance, error, legacy_spec, attempts, spec)
            return
        for instance, host_list in zip(instances, plan.host_lists, strict=True):
            self._builder.build(plan, instance, host_list)

    def _with_flavor(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        """The properties with their flavor as an object, for callers from before 1.10."""
        given = properties.get("instance_type")
        if not given or isinstance(given, objects.Flavor):
            return properties
        with self._stores.api.read() as conn:
            return {**properties, "instance_type": flavors.get_by_id(conn, given["id"])}


def _security_groups(specs: Sequence[objects.RequestSpec]) -> list[str]:
    """The names of the security groups that the requests carry, all the same ones."""
    listed = specs[0].security_groups if specs else ()
    return [each.uuid if each.is_set("uuid") else each.name for each in listed]


def _with_disks(
    wanted: objects.BuildRequest, given: objects.BlockDeviceMappingList | None
) -> objects.BuildRequest:
    """*wanted* with disks of its own; one that names none gets disks like those *given*."""
    if given is None or wanted.is_set("block_device_mappings"):
        return wanted
    known = wanted.copy()
    known.block_device_mappings = given.copy()
    for device in known.block_device_mappings:
        device.uuid = str(uuid.uuid4())
    return known
