"""The RPC methods of one compute host: reference page conductor, section 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_log import log as logging

from conductor_stub.compute.builds import BuildRequest
from conductor_stub.compute.hosts import ComputeHosts
from conductor_stub.compute.moves import ResizeRequest
from conductor_stub.compute.older_endpoint import OlderEndpoint
from conductor_stub.records import Order, network_requests
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

TOPIC = "compute"
VERSIONS = ("6.5", "5.13", "4.22", "3.40")
"""The newest version of each major one; an endpoint serves one major version."""


def endpoints_of(hosts: ComputeHosts, host: str) -> list[ComputeEndpoint | OlderEndpoint]:
    """What serves *host*: the same methods in every major version but the oldest one."""
    newer = [ComputeEndpoint(hosts, host, version) for version in VERSIONS]
    return [*newer, OlderEndpoint(hosts, host)]


class ComputeEndpoint:
    """Building, deleting and moving instances on one host, in one major version.

    Arguments that came with later minor versions may be missing.
    """

    def __init__(self, hosts: ComputeHosts, host: str, version: str) -> None:
        self.target = messaging.Target(version=version)
        self._hosts = hosts
        self._host = host

    @messaging.expose
    def build_and_run_instance(  # the wire names these arguments, hence so many
        self,
        context: RequestContext,
        instance: objects.Instance,
        image: dict[str, Any] | None,
        request_spec: objects.RequestSpec | dict[str, Any] | None,
        filter_properties: dict[str, Any] | None,
        admin_password: str | None = None,
        injected_files: list[Any] | None = None,
        requested_networks: Any = None,
        security_groups: list[str] | None = None,
        block_device_mapping: Any = None,  # noqa: ARG002  (there are no volumes to attach)
        node: str | None = None,
        limits: dict[str, Any] | None = None,
        host_list: Sequence[objects.Selection] | None = None,
        accel_uuids: list[str] | None = None,  # noqa: ARG002  (there are no accelerators)
    ) -> None:
        """Build the instance; returns when it runs, or when it was handed back."""
        if node not in (None, self._host):
            LOG.warning("Host %s was asked to build on node %s of another", self._host, node)
        order = Order(
            context=context,
            image=image or {},
            admin_password=admin_password,
            injected_files=injected_files or [],
            requested_networks=network_requests(requested_networks),
            security_groups=security_groups or [],
        )
        request = BuildRequest(
            order=order,
            instance=instance,
            request_spec=request_spec,
            filter_properties=filter_properties or {},
            limits=limits or {},
            host_list=None if host_list is None else list(host_list),
        )
        self._hosts.build(self._host, request)

    @messaging.expose
    def terminate_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        bdms: Any = None,  # noqa: ARG002  (there are no volumes to detach)
        reservations: list[str] | None = None,  # noqa: ARG002  (quota is the API's)
    ) -> None:
        """Delete the instance and free what it used."""
        self._hosts.terminate(self._host, context, instance.uuid)

    @messaging.expose
    def prep_resize(  # the wire names these arguments, hence so many
        self,
        context: RequestContext,
        instance: objects.Instance,
        image: dict[str, Any] | None,  # noqa: ARG002  (there are no disks to copy)
        request_spec: objects.RequestSpec | dict[str, Any] | None,
        filter_properties: dict[str, Any] | None,
        node: str | None = None,  # noqa: ARG002  (a host has one node)
        flavor: objects.Flavor | None = None,
        instance_type: objects.Flavor | dict[str, Any] | None = None,
        clean_shutdown: bool = True,
        migration: Any = None,  # noqa: ARG002  (no record of it is kept)
        host_list: Sequence[objects.Selection] | None = None,
        reservations: list[str] | None = None,  # noqa: ARG002  (quota is the API's)
    ) -> None:
        """Take the instance over with its new flavor."""
        given = flavor if flavor is not None else instance_type
        if given is None:
            raise errors.InvalidRequest(field="flavor", reason="there is none in prep_resize")
        request = ResizeRequest(
            context=context,
            instance=instance,
            flavor=objects.Flavor.read_fields(given) if isinstance(given, dict) else given,
            request_spec=request_spec if isinstance(request_spec, objects.RequestSpec) else None,
            filter_properties=filter_properties or {},
            clean_shutdown=clean_shutdown,
            host_list=None if host_list is None else list(host_list),
        )
        self._hosts.moves(self._host).prep_resize(request)

    @messaging.expose
    def confirm_resize(
        self,
        context: RequestContext,
        instance: objects.Instance,
        migration: Any = None,  # noqa: ARG002  (no record of it is kept)
        reservations: list[str] | None = None,  # noqa: ARG002  (quota is the API's)
    ) -> None:
        """Forget the instance, which has moved away."""
        self._hosts.moves(self._host).confirm_resize(context, instance.uuid)

    @messaging.expose
    def unshelve_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        image: dict[str, Any] | None,  # noqa: ARG002  (there are no disks to make)
        filter_properties: dict[str, Any] | None,
        node: str | None,  # noqa: ARG002  (a host has one node)
        request_spec: objects.RequestSpec | None = None,  # noqa: ARG002  (the limits say enough)
        accel_uuids: list[str] | None = None,  # noqa: ARG002  (there are no accelerators)
    ) -> None:
        """Let the shelved instance run."""
        limits = (filter_properties or {}).get("limits") or {}
        self._hosts.moves(self._host).unshelve(context, instance.uuid, limits)

    @messaging.expose
    def rebuild_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        limits: dict[str, Any] | None = None,
        **more: Any,  # noqa: ARG002  (images and disks, of which there are none)
    ) -> None:
        """Build the instance anew, or take it over from a host that is down."""
        self._hosts.moves(self._host).rebuild(context, instance.uuid, limits or {})
