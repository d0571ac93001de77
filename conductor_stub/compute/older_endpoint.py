"""The orders of a scheduler of Havana's time, which tells hosts to build by itself.

Instances come as plain dicts, and what fails goes back to the scheduler.  Reference page conductor,
sections 8.2 and 13.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import oslo_messaging as messaging

from conductor_stub.compute.builds import BuildRequest
from conductor_stub.compute.hosts import ComputeHosts
from conductor_stub.records import Order, network_requests
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

VERSION = "2.47"


class OlderEndpoint:
    """``run_instance`` and ``terminate_instance`` of one host, in the second major version."""

    target = messaging.Target(version=VERSION)

    def __init__(self, hosts: ComputeHosts, host: str) -> None:
        self._hosts = hosts
        self._host = host

    @messaging.expose
    def run_instance(  # the wire names these arguments, hence so many
        self,
        context: RequestContext,
        instance: Mapping[str, Any] | objects.Instance,
        request_spec: dict[str, Any] | None,
        filter_properties: dict[str, Any] | None,
        requested_networks: Any = None,
        injected_files: list[Any] | None = None,
        admin_password: str | None = None,
        is_first_time: bool = False,
        node: str | None = None,  # noqa: ARG002  (a host has one node)
        legacy_bdm_in_spec: bool = True,
    ) -> None:
        """Build the instance; returns when it runs, or when it was handed back."""
        properties, spec = filter_properties or {}, request_spec or {}
        again = {
            "request_spec": {**spec, "instance_uuids": [_uuid(instance)]},
            "admin_password": admin_password,
            "injected_files": injected_files,
            "requested_networks": requested_networks,
            "is_first_time": is_first_time,
            "legacy_bdm_in_spec": legacy_bdm_in_spec,
        }
        order = _order(context, spec, admin_password, injected_files, requested_networks)
        request = BuildRequest(
            order=order,
            instance=self._hosts.instance(_uuid(instance)),
            request_spec=spec,
            # Without the request there is nothing to hand back.
            filter_properties=properties if spec else {**properties, "retry": None},
            limits=properties.get("limits") or {},
            host_list=None,
            run_again=again,
        )
        self._hosts.build(self._host, request)

    @messaging.expose
    def terminate_instance(
        self,
        context: RequestContext,
        instance: Mapping[str, Any] | objects.Instance,
        bdms: Any = None,  # noqa: ARG002  (there are no volumes to detach)
        reservations: list[str] | None = None,  # noqa: ARG002  (quota is the API's)
    ) -> None:
        """Delete the instance and free what it used."""
        self._hosts.terminate(self._host, context, _uuid(instance))


def _order(
    context: RequestContext,
    spec: Mapping[str, Any],
    admin_password: str | None,
    injected_files: list[Any] | None,
    requested_networks: Any,
) -> Order:
    """What the user asked for; image and security groups are in the request."""
    return Order(
        context=context,
        image=spec.get("image") or {},
        admin_password=admin_password,
        injected_files=injected_files or [],
        requested_networks=network_requests(requested_networks),
        security_groups=spec.get("security_group") or [],
    )


def _uuid(instance: Mapping[str, Any] | objects.Instance) -> str:
    try:
        return str(instance["uuid"])
    except (KeyError, TypeError) as error:
        raise errors.InvalidRequest(field="instance.uuid", reason="there is none") from error
