"""The conductor's RPC methods (reference page conductor, sections 2 to 6).

Differences between releases follow from the arguments of the sender and from the versions that
its peers understand.  Unlike in Nova, one instance or build request that is gone does not stop the
others of its batch.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_log import log as logging

from conductor_stub import request_dicts, wire_objects
from conductor_stub.building import Builder
from conductor_stub.moving import Mover
from conductor_stub.planning import GivenHostLists
from conductor_stub.records import MoveRequest, Order, refuse_unknown
from conductor_stub.rpcapi import NAMESPACE
from scheduler import errors, objects
from scheduler.db import flavors
from scheduler.objects import registry
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

REBUILD_ARGUMENTS = (
    "image_ref orig_image_ref injected_files new_pass orig_sys_metadata bdms recreate "
    "on_shared_storage preserve_ephemeral"
)
"""Arguments of ``rebuild_instance`` that go on to the host as they are."""


class ComputeTaskManager:
    """The endpoint of topic ``conductor``, namespace ``compute_task``."""

    target = messaging.Target(namespace=NAMESPACE, version="1.26")

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._mover = Mover(builder)

    @messaging.expose
    def build_instances(
        self,
        context: RequestContext,
        instances: Sequence[objects.Instance],
        filter_properties: dict[str, Any],
        request_spec: objects.RequestSpec | dict[str, Any] | None = None,
        host_lists: GivenHostLists | None = None,
        **given: Any,
    ) -> None:
        """Find hosts for *instances* and have them built there; failures end in ERROR.

        *given* is an order; disks in it are not read, as they are in the rows since 1.7.
        """
        order = Order.from_arguments(context, given, "block_device_mapping legacy_bdm")
        properties, legacy_spec, builder = filter_properties, {}, self._builder
        spec = request_spec if isinstance(request_spec, objects.RequestSpec) else None
        try:
            properties = self._with_flavor(properties)
            legacy_spec = request_dicts.legacy_spec(order.image, instances, request_spec)
            first, most = instances[0].uuid, builder.planner.max_attempts
            properties = request_dicts.populate_retry(properties, first, most)
            plan, hosts = builder.planner.plan(
                order, instances, properties, legacy_spec, spec, host_lists
            )
        except Exception as error:
            LOG.debug("No hosts for %d instance(s)", len(instances), exc_info=True)
            attempts, end_build = request_dicts.attempts(properties), builder.failures.end_build
            for instance in instances:
                end_build(context, instance, error, legacy_spec, attempts, spec)
            return
        for instance, host_list in zip(instances, hosts, strict=True):
            builder.build(plan, instance, host_list)

    @messaging.expose
    def schedule_and_build_instances(
        self,
        context: RequestContext,
        build_requests: Sequence[wire_objects.BuildRequest],
        request_specs: Sequence[objects.RequestSpec],
        block_device_mapping: wire_objects.BlockDeviceMappingList | None = None,
        **given: Any,
    ) -> None:
        """Make the servers of *build_requests* on hosts found for them; *given* is an order."""
        if len(request_specs) != len(build_requests):
            reason = f"{len(request_specs)} for {len(build_requests)} servers"
            raise errors.InvalidRequest(field="request_specs", reason=reason)
        groups = request_specs[0].security_groups if request_specs else ()
        names = [each.uuid if each.is_set("uuid") else each.name for each in groups]
        order = Order.from_arguments(context, {**given, "security_groups": names}, "tags")
        servers = [_with_disks(wanted, block_device_mapping) for wanted in build_requests]
        if servers:
            self._builder.build_new(order, servers, request_specs)

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
        clean_shutdown: bool = True,
        request_spec: objects.RequestSpec | None = None,
        host_list: list[objects.Selection] | None = None,
        **unread: Any,  # of live migrations, and quota of the API
    ) -> None:
        """Move *instance* to another host, with *flavor* from then on (its own: a migration)."""
        refuse_unknown(unread, "block_migration disk_over_commit reservations")
        if live or rebuild or flavor is None:
            reason = "only resizes and cold migrations are done here"
            raise errors.InvalidRequest(field="migrate_server", reason=reason)
        properties = (scheduler_hint or {}).get("filter_properties") or {}
        self._mover.resize(
            MoveRequest(
                context, instance, flavor, properties, request_spec, clean_shutdown, host_list
            )
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
    def rebuild_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        host: str | None = None,
        request_spec: objects.RequestSpec | None = None,
        **given: Any,
    ) -> None:
        """Rebuild *instance* on *host*, or let another host than its own take it over."""
        refuse_unknown(given, f"{REBUILD_ARGUMENTS} reimage_boot_volume target_state")
        given.setdefault("preserve_ephemeral", False)
        passed = {name: given.get(name) for name in REBUILD_ARGUMENTS.split()}
        self._mover.rebuild(context, instance, passed, host, request_spec)

    def _with_flavor(self, properties: dict[str, Any]) -> dict[str, Any]:
        """The properties with their flavor as an object, for callers from before 1.10."""
        given = properties.get("instance_type")
        if not given or isinstance(given, objects.Flavor):
            return properties
        with self._builder.database.read() as conn:
            return {**properties, "instance_type": flavors.get(conn, "id", given["id"])}


def _with_disks(
    wanted: wire_objects.BuildRequest, given: wire_objects.BlockDeviceMappingList | None
) -> wire_objects.BuildRequest:
    """*wanted* with disks of its own; one that names none gets disks like those *given*."""
    if given is None or wanted.is_set("block_device_mappings"):
        return wanted
    known = wanted.copy()
    known.block_device_mappings = given.copy()
    for device in known.block_device_mappings:
        device.uuid = str(uuid.uuid4())
    return known


class BackportAPI:
    """The endpoint of topic ``conductor`` without a namespace, as far as computes need it."""

    target = messaging.Target(version="3.0")

    @messaging.expose
    @messaging.expected_exceptions(errors.NovaException)
    def object_backport_versions(
        self,
        context: Any,
        objinst: objects.WireObject,
        object_versions: Mapping[str, str],
    ) -> dict[str, Any]:
        """*objinst* and its objects in at most the given versions; raises InvalidRequest."""
        if not isinstance(objinst, objects.WireObject):
            raise errors.InvalidRequest(field="objinst", reason="it is not an object")
        try:
            wanted = {name: _at_most(name, asked) for name, asked in object_versions.items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise errors.InvalidRequest(field="object_versions", reason=str(error)) from error
        return objinst.encoded(wanted)


def _at_most(name: str, asked: str) -> str:
    """The version *asked* for, or ours where that is older: more cannot be said."""
    cls = registry.CLASSES.get(name)
    if cls is None or registry.parse(asked) <= registry.parse(cls.VERSION):
        return asked
    ours: str = cls.VERSION
    return ours
