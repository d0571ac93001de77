"""The RPC methods of one compute host: reference page conductor, section 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oslo_messaging as messaging
from oslo_log import log as logging

from conductor_stub.compute.builds import BuildRequest
from conductor_stub.compute.hosts import ComputeHosts
from conductor_stub.records import Order, network_requests
from scheduler import objects
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

TOPIC = "compute"
VERSIONS = ("6.5", "5.13", "4.22", "3.40")
"""The newest version of each major one; an endpoint serves one major version."""


def endpoints_of(hosts: ComputeHosts, host: str) -> list[ComputeEndpoint]:
    """What serves *host*: the same methods in every major version."""
    return [ComputeEndpoint(hosts, host, version) for version in VERSIONS]


class ComputeEndpoint:
    """``build_and_run_instance`` and ``terminate_instance`` of one host in one major version.

    Arguments that came with later minor versions may be missing.
    """

    def __init__(self, hosts: ComputeHosts, host: str, version: str) -> None:
        self.target = messaging.Target(version=version)
        self._hosts = hosts
        self._host = host

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

    def terminate_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        bdms: Any = None,  # noqa: ARG002  (there are no volumes to detach)
        reservations: list[str] | None = None,  # noqa: ARG002  (quota is the API's)
    ) -> None:
        """Delete the instance and free what it used."""
        self._hosts.terminate(self._host, context, instance.uuid)
