"""The scheduler as its callers see it (reference page rpc, sections 1, 3 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import oslo_messaging
from oslo_config import cfg

from scheduler import errors, objects
from scheduler.rpc.client import translated_errors, version_cap
from scheduler.rpc.messages import RequestContextSerializer

BASE_VERSION: Final = "4.0"


class BaseClient:
    """The base API of whatever listens on *topic*.

    A broker that cannot be reached is tried *retry* times more; None is for ever.  Raises
    ConfigurationError for a value of ``[upgrade_levels] baseapi`` that is no version.
    """

    def __init__(
        self,
        transport: oslo_messaging.transport.RPCTransport,
        topic: str,
        retry: int | None = None,
    ) -> None:
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(topic=topic, namespace="baseapi", version="1.0"),
            version_cap=version_cap(transport.conf, "baseapi"),
            serializer=RequestContextSerializer(),
            retry=retry,
        )

    def ping(self, context: Any, arg: Any, timeout_seconds: float | None = None) -> dict[str, Any]:
        """Ask any one listener; MessagingTimeout when there is none."""
        call = self._client.prepare(timeout=timeout_seconds)
        with translated_errors():
            answer: dict[str, Any] = call.call(context, "ping", arg=arg)
        return answer


class SchedulerAPI:
    """Calls and broadcasts to the schedulers, never newer than ``[upgrade_levels] scheduler``.

    Errors of this project's family that the scheduler answers with are raised as the classes of
    ``scheduler.errors``; others as the library raises them.
    """

    def __init__(
        self, transport: oslo_messaging.transport.RPCTransport, conf: cfg.ConfigOpts
    ) -> None:
        """Raises ConfigurationError for a cap that is none."""
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(topic=conf.scheduler_topic, version=BASE_VERSION),
            version_cap=version_cap(conf, "scheduler"),
            serializer=RequestContextSerializer(),
        )
        self._base_client = BaseClient(transport, conf.scheduler_topic)
        self._timeout_seconds = conf.long_rpc_timeout
        self._monitor_seconds = conf.rpc_response_timeout

    def select_destinations(
        self,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        return_objects: bool = False,
        return_alternates: bool = False,
    ) -> Any:
        """Ask for hosts, with the newest version that the cap allows.

        Returns per instance a list of Selections if *return_objects*, else a dict.  Raises
        NoValidHost when not every instance gets a host, and
        SelectionObjectsWithOldRPCVersionNotSupported when Selections are wanted although the cap
        is below 4.5.
        """
        version, arguments = self._arguments(
            spec_obj, instance_uuids, return_objects, return_alternates
        )
        call = self._client.prepare(
            version=version,
            timeout=self._timeout_seconds,
            call_monitor_timeout=self._monitor_seconds,
        )
        with translated_errors():
            return call.call(context, "select_destinations", **arguments)

    def _arguments(
        self,
        spec: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        return_objects: bool,
        return_alternates: bool,
    ) -> tuple[str, dict[str, Any]]:
        uuids = None if instance_uuids is None else list(instance_uuids)
        if self._client.can_send_version("4.5"):
            return "4.5", {
                "spec_obj": spec,
                "instance_uuids": uuids,
                "return_objects": return_objects,
                "return_alternates": return_alternates,
            }
        if return_objects or return_alternates:
            raise errors.SelectionObjectsWithOldRPCVersionNotSupported(
                version=self._client.version_cap
            )
        if self._client.can_send_version("4.4"):
            return "4.4", {"spec_obj": spec, "instance_uuids": uuids}
        if self._client.can_send_version("4.3"):
            return "4.3", {"spec_obj": spec}
        return BASE_VERSION, {
            "request_spec": spec.to_legacy_request_spec_dict(),
            "filter_properties": spec.to_legacy_filter_properties_dict(),
        }

    def update_aggregates(self, context: Any, aggregates: Sequence[objects.Aggregate]) -> None:
        """Tell every scheduler of changed aggregates."""
        self._fanout(context, "4.1", "update_aggregates", aggregates=list(aggregates))

    def delete_aggregate(self, context: Any, aggregate: objects.Aggregate) -> None:
        """Tell every scheduler of a deleted aggregate."""
        self._fanout(context, "4.1", "delete_aggregate", aggregate=aggregate)

    def update_instance_info(
        self, context: Any, host_name: str, instance_info: objects.InstanceList
    ) -> None:
        """Tell every scheduler of instances of *host_name*: one that changed, or all of them."""
        told = {"host_name": host_name, "instance_info": instance_info}
        self._fanout(context, "4.2", "update_instance_info", **told)

    def delete_instance_info(self, context: Any, host_name: str, instance_uuid: str) -> None:
        """Tell every scheduler of an instance that left *host_name*."""
        told = {"host_name": host_name, "instance_uuid": instance_uuid}
        self._fanout(context, "4.2", "delete_instance_info", **told)

    def sync_instance_info(
        self, context: Any, host_name: str, instance_uuids: Sequence[str]
    ) -> None:
        """Tell every scheduler which instances *host_name* has."""
        told = {"host_name": host_name, "instance_uuids": list(instance_uuids)}
        self._fanout(context, "4.2", "sync_instance_info", **told)

    def ping(self, context: Any, arg: Any, timeout_seconds: float | None = None) -> dict[str, Any]:
        """Ask any scheduler for a sign of life; MessagingTimeout when there is none."""
        return self._base_client.ping(context, arg, timeout_seconds)

    def _fanout(self, context: Any, version: str, method: str, **arguments: Any) -> None:
        self._client.prepare(version=version, fanout=True).cast(context, method, **arguments)
