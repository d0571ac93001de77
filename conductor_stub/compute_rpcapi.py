"""The casts to compute hosts (reference page conductor, section 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

from conductor_stub import compute_arguments, compute_versions
from conductor_stub.compute_versions import Version
from conductor_stub.records import BuildCast, RebuildCast, ResizeCast, UnshelveCast
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
        cap = self._current_cap()
        return compute_versions.newest(compute_versions.BUILD_VERSIONS, cap) >= (5, 0)

    def build_and_run_instance(self, context: RequestContext, host: str, build: BuildCast) -> None:
        """Tell *host* to build the instance."""
        self._cast(
            context,
            host,
            "build_and_run_instance",
            compute_versions.BUILD_VERSIONS,
            lambda version: compute_arguments.of_build(build, version),
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
        self._cast(
            context,
            instance.host,
            "terminate_instance",
            compute_versions.TERMINATE_VERSIONS,
            lambda version: compute_arguments.of_terminate(instance, bdms, version),
        )

    def prep_resize(self, context: RequestContext, host: str, resize: ResizeCast) -> None:
        """Tell *host* that the instance is to move there."""
        self._cast(
            context,
            host,
            "prep_resize",
            compute_versions.PREP_RESIZE_VERSIONS,
            lambda version: compute_arguments.of_prep_resize(resize, version),
        )

    def confirm_resize(
        self, context: RequestContext, host: str, instance: objects.Instance
    ) -> None:
        """Tell *host* that the instance has moved away from it for good."""
        self._cast(
            context,
            host,
            "confirm_resize",
            compute_versions.CONFIRM_RESIZE_VERSIONS,
            lambda version: compute_arguments.of_confirm_resize(instance, version),
        )

    def unshelve_instance(self, context: RequestContext, host: str, unshelve: UnshelveCast) -> None:
        """Tell *host* to let the shelved instance run."""
        self._cast(
            context,
            host,
            "unshelve_instance",
            compute_versions.UNSHELVE_VERSIONS,
            lambda version: compute_arguments.of_unshelve(unshelve, version),
        )

    def rebuild_instance(
        self, context: RequestContext, host: str | None, rebuild: RebuildCast
    ) -> None:
        """Tell *host*, or else the instance's own, to rebuild it; NovaException without any."""
        target = host or rebuild.instance.host
        if not target:
            raise errors.NovaException("No compute host specified")
        self._cast(
            context,
            target,
            "rebuild_instance",
            compute_versions.REBUILD_VERSIONS,
            lambda version: compute_arguments.of_rebuild(rebuild, version),
        )

    def _current_cap(self) -> Version | None:
        if self._auto:
            return compute_versions.cap_for_service_version(self._lowest_service_version())
        return self._cap

    def _cast(
        self,
        context: RequestContext,
        host: str,
        method: str,
        versions: tuple[Version, ...],
        arguments_of: Callable[[Version], dict[str, Any]],
    ) -> None:
        cap = self._current_cap()
        version = compute_versions.newest(versions, cap)
        arguments = arguments_of(version)
        fitting = compute_versions.object_versions(cap)
        if fitting is not None:
            arguments = {name: fitted(value, fitting) for name, value in arguments.items()}
        client = self._client.prepare(server=host, version=f"{version[0]}.{version[1]}")
        client.cast(context, method, **arguments)


def fitted(value: Any, versions: Mapping[str, str]) -> Any:
    """*value* with every object in it as an envelope of the version that *versions* names."""
    if isinstance(value, objects.WireObject):
        return value.encoded(versions)
    if isinstance(value, dict):
        return {name: fitted(each, versions) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [fitted(each, versions) for each in value]
    return value
