"""The casts to compute hosts (reference page conductor, section 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

from conductor_stub import compute_versions
from conductor_stub.compute_versions import Version
from conductor_stub.records import BuildCast
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext
from scheduler.rpc.serializer import ObjectSerializer, RequestContextSerializer

TOPIC = "compute"


class ComputeAPI:
    """Casts to topic ``compute``, server = the host, in the version that the hosts understand.

    The version follows ``[upgrade_levels] compute``.  For its value ``auto``,
    *lowest_service_version* is asked for the oldest compute service before each cast.  *retry* is
    how often a broker that cannot be reached is tried again; None: for ever.
    """

    def __init__(
        self,
        transport: messaging.Transport,
        conf: cfg.ConfigOpts,
        lowest_service_version: Callable[[], int | None] = lambda: None,
        retry: int | None = None,
    ) -> None:
        target = messaging.Target(topic=TOPIC, version="6.0")
        serializer = RequestContextSerializer(ObjectSerializer())
        self._client = messaging.get_rpc_client(
            transport, target, serializer=serializer, retry=retry
        )
        self._lowest_service_version = lowest_service_version
        configured = conf.upgrade_levels.compute
        self._auto = configured == compute_versions.AUTO
        self._cap = None if self._auto else compute_versions.parse_cap(configured)
        compute_versions.newest(compute_versions.BUILD_VERSIONS, self._cap)

    def takes_spec_objects(self) -> bool:
        """Whether the hosts take the request as an object, and so give it back on a reschedule."""
        return self._version(compute_versions.BUILD_VERSIONS) >= (5, 0)

    def build_and_run_instance(self, context: RequestContext, host: str, build: BuildCast) -> None:
        """Tell *host* to build the instance."""
        version = self._version(compute_versions.BUILD_VERSIONS)
        self._cast(
            context, host, version, "build_and_run_instance", build_arguments(build, version)
        )

    def terminate_instance(
        self,
        context: RequestContext,
        instance: objects.Instance,
        bdms: objects.BlockDeviceMappingList,
    ) -> None:
        """Tell the instance's host to delete it; NovaException when it has none."""
        if not instance.host:
            raise errors.NovaException(f"Unable to find host for Instance {instance.uuid}")
        version = self._version(compute_versions.TERMINATE_VERSIONS)
        arguments: dict[str, Any] = {"instance": instance, "bdms": bdms}
        if version < (5, 0):
            arguments["reservations"] = None
        self._cast(context, instance.host, version, "terminate_instance", arguments)

    def _version(self, versions: tuple[Version, ...]) -> Version:
        cap = self._cap
        if self._auto:
            cap = compute_versions.cap_for_service_version(self._lowest_service_version())
        return compute_versions.newest(versions, cap)

    def _cast(
        self,
        context: RequestContext,
        host: str,
        version: Version,
        method: str,
        arguments: dict[str, Any],
    ) -> None:
        client = self._client.prepare(server=host, version=f"{version[0]}.{version[1]}")
        client.cast(context, method, **arguments)


def build_arguments(build: BuildCast, version: Version) -> dict[str, Any]:
    """The arguments of ``build_and_run_instance`` as *version* names them.

    NUMA limits go as an envelope inside a plain dict, which every release reads.
    """
    arguments = {
        "instance": build.instance,
        "image": build.order.image,
        "request_spec": build.request_spec if version >= (5, 0) else build.legacy_spec,
        "filter_properties": build.filter_properties,
        "admin_password": build.order.admin_password,
        "injected_files": build.order.injected_files,
        "requested_networks": build.order.requested_networks,
        "security_groups": build.order.security_groups,
        "block_device_mapping": build.block_device_mapping,
        "node": build.node,
        "limits": build.limits,
    }
    if version >= (4, 19):
        arguments["host_list"] = build.host_list
    if version >= (5, 11):
        arguments["accel_uuids"] = build.accel_uuids
    return arguments
