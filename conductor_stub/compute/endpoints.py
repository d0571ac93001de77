"""The RPC methods of one compute host (reference page conductor, sections 8 and 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_log import log as logging

from conductor_stub.compute.host import BuildRequest, Host
from conductor_stub.records import MoveRequest, Order, refuse_unknown
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

REBUILD_UNREAD = (
    "orig_image_ref image_ref injected_files new_pass orig_sys_metadata bdms recreate "
    "on_shared_storage preserve_ephemeral migration scheduled_node request_spec accel_uuids "
    "reimage_boot_volume target_state"
)
VERSIONS = ("6.5", "5.13", "4.22", "3.40")
"""The newest version of each major one; an endpoint serves one major version."""
OLDER_VERSION = "2.47"


def endpoints_of(host: Host) -> list[ComputeEndpoint | OlderEndpoint]:
    """The endpoints of *host*: the same methods in every major version but the oldest one."""
    newer = [ComputeEndpoint(host, version) for version in VERSIONS]
    return [*newer, OlderEndpoint(host, OLDER_VERSION)]


class _Endpoint:
    """The methods of one host that every major version has; *version* is the newest of one."""

    def __init__(self, host: Host, version: str) -> None:
        self.target = messaging.Target(version=version)
        self._host = host

    @messaging.expose
    def terminate_instance(
        self,
        context: RequestContext,
        instance: Mapping[str, Any] | objects.Instance,
        **unread: Any,  # volumes, and quota of the API
    ) -> None:
        """Delete the instance and free what it used."""
        refuse_unknown(unread, "bdms reservations")
        self._host.terminate(context, _uuid(instance))


class ComputeEndpoint(_Endpoint):
    """Building, deleting and moving instances on one host."""

    @messaging.expose
    def build_and_run_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        request_spec: objects.RequestSpec | dict[str, Any] | None,
        filter_properties: dict[str, Any] | None,
        node: str | None = None,
        limits: dict[str, Any] | None = None,
        host_list: Sequence[objects.Selection] | None = None,
        **given: Any,
    ) -> None:
        """Build the instance; returns when it runs, or when it was handed back.

        *given* is an order; there are no volumes and accelerators.
        """
        name = self._host.rows.host
        if node not in (None, name):
            LOG.warning("Host %s was asked to build on node %s of another", name, node)
        request = BuildRequest(
            order=Order.from_arguments(context, given, "block_device_mapping accel_uuids"),
            instance=instance,
            request_spec=request_spec,
            filter_properties=filter_properties or {},
            limits=limits or {},
            host_list=None if host_list is None else list(host_list),
        )
        self._host.build(request)

    @messaging.expose
    def prep_resize(  # the wire names these arguments, hence so many
        self,
        context: RequestContext,
        instance: objects.Instance,
        request_spec: objects.RequestSpec | dict[str, Any] | None,
        filter_properties: dict[str, Any] | None,
        flavor: objects.Flavor | None = None,
        instance_type: objects.Flavor | dict[str, Any] | None = None,
        clean_shutdown: bool = True,
        host_list: Sequence[objects.Selection] | None = None,
        **unread: Any,  # no disks or records are kept
    ) -> None:
        """Take the instance over with its new flavor."""
        refuse_unknown(unread, "image node migration reservations")
        given = flavor if flavor is not None else instance_type
        if given is None:
            raise errors.InvalidRequest(field="flavor", reason="there is none in prep_resize")
        if isinstance(request_spec, dict):  # below 5.1
            properties = filter_properties or {}
            request_spec = objects.RequestSpec.from_primitives(request_spec, properties)
        request = MoveRequest(
            context=context,
            instance=instance,
            flavor=objects.Flavor.read_fields(given) if isinstance(given, dict) else given,
            request_spec=request_spec,
            filter_properties=filter_properties or {},
            clean_shutdown=clean_shutdown,
            host_list=None if host_list is None else list(host_list),
        )
        self._host.prep_resize(request)

    @messaging.expose
    def confirm_resize(
        self,
        context: RequestContext,
        instance: objects.Instance,
        **unread: Any,  # no record is kept of moves
    ) -> None:
        """Forget the instance, which has moved away."""
        refuse_unknown(unread, "migration reservations")
        self._host.confirm_resize(context, instance.uuid)

    @messaging.expose
    def unshelve_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        filter_properties: dict[str, Any] | None,
        **unread: Any,  # the limits say enough
    ) -> None:
        """Let the shelved instance run."""
        refuse_unknown(unread, "image node request_spec accel_uuids")
        limits = (filter_properties or {}).get("limits") or {}
        self._host.bring_to_life(context, instance.uuid, "unshelving", limits)

    @messaging.expose
    def rebuild_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        limits: dict[str, Any] | None = None,
        **unread: Any,  # there are no images and disks
    ) -> None:
        """Build the instance anew, or take it over from a host that is down."""
        refuse_unknown(unread, REBUILD_UNREAD)
        self._host.bring_to_life(context, instance.uuid, "rebuilding", limits or {})


RUN_AGAIN = {
    **dict.fromkeys(("admin_password", "injected_files", "requested_networks")),
    "is_first_time": False,
    "legacy_bdm_in_spec": True,
}
"""Arguments of ``run_instance`` that go back to the scheduler, with their defaults."""


class OlderEndpoint(_Endpoint):
    """``run_instance`` and ``terminate_instance`` of one host, in the second major version."""

    @messaging.expose
    def run_instance(
        self,
        context: RequestContext,
        instance: Mapping[str, Any] | objects.Instance,
        request_spec: dict[str, Any] | None,
        filter_properties: dict[str, Any] | None,
        **given: Any,
    ) -> None:
        """Build the instance; returns when it runs, or when it was handed back."""
        properties, spec = filter_properties or {}, request_spec or {}
        again = {
            "request_spec": {**spec, "instance_uuids": [_uuid(instance)]},
            **{name: given.get(name, default) for name, default in RUN_AGAIN.items()},
        }
        refuse_unknown(given, f"{' '.join(RUN_AGAIN)} node")
        order = {name: given.get(name) for name in ("admin_password", "injected_files")}
        order["requested_networks"] = given.get("requested_networks")
        order |= {"image": spec.get("image"), "security_groups": spec.get("security_group")}
        request = BuildRequest(
            order=Order.from_arguments(context, order),
            instance=self._host.rows.get(_uuid(instance)),
            request_spec=spec,
            # Without the request there is nothing to hand back.
            filter_properties=properties if spec else {**properties, "retry": None},
            limits=properties.get("limits") or {},
            host_list=None,
            run_again=again,
        )
        self._host.build(request)


def _uuid(instance: Mapping[str, Any] | objects.Instance) -> str:
    try:
        return str(instance["uuid"])
    except (KeyError, TypeError) as error:
        raise errors.InvalidRequest(field="instance.uuid", reason="there is none") from error
