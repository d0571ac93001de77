"""Schedulers and conductors as their callers see them.

Reference pages rpc, sections 1, 3 and 6, and conductor, sections 2 and 13.
"""

from collections.abc import Sequence
from typing import Any, Final

from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from conductor_stub import wire_objects
from conductor_stub.records import MoveRequest, Order
from scheduler import errors, objects
from scheduler.rpc.client import client, translated_errors, version_cap
from scheduler.rpc.context import RequestContext, get_admin_context

BASE_VERSION: Final = "4.0"
FANOUTS: Final = {
    **dict.fromkeys(("update_aggregates", "delete_aggregate"), "4.1"),
    **dict.fromkeys(("update_instance_info", "delete_instance_info", "sync_instance_info"), "4.2"),
}
"""The version that brought each method that is fanned out to all schedulers."""


def ping(transport: RPCTransport, topic: str, timeout_seconds: float, retry: int) -> None:
    """Return once a listener of *topic* gives a sign of life; MessagingTimeout when none does.

    A broker that cannot be reached is tried *retry* times more.  Raises ConfigurationError for a
    value of ``[upgrade_levels] baseapi`` that is no version.
    """
    cap = version_cap(transport.conf, "baseapi")
    base = client(transport, topic, "1.0", "baseapi", version_cap=cap, retry=retry)
    with translated_errors():
        base.prepare(timeout=timeout_seconds).call(get_admin_context(), "ping", arg="boot")


class SchedulerAPI:
    """Calls and broadcasts to the schedulers, never newer than ``[upgrade_levels] scheduler``.

    Errors of this project's family that the scheduler answers with are raised as the classes of
    ``scheduler.errors``; others as the library raises them.
    """

    def __init__(self, transport: RPCTransport, conf: cfg.ConfigOpts) -> None:
        """Raises ConfigurationError for a cap that is none."""
        cap, topic = version_cap(conf, "scheduler"), conf.scheduler_topic
        self._client = client(transport, topic, BASE_VERSION, version_cap=cap)
        version_cap(conf, "baseapi")  # a bad one is refused at once
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

    def fanout(self, context: Any, method: str, **arguments: Any) -> None:
        """Notify every scheduler of aggregates or instances: *method* is one of FANOUTS."""
        call = self._client.prepare(version=FANOUTS[method], fanout=True)
        call.cast(context, method, **arguments)


TOPIC = "conductor"
NAMESPACE = "compute_task"


class ComputeTaskAPI:
    """Topic ``conductor``, ``compute_task``; *retry* limits attempts to reach the broker."""

    def __init__(self, transport: RPCTransport, retry: int | None = None) -> None:
        self._client = client(transport, TOPIC, "1.0", NAMESPACE, retry=retry)

    def build_instances(
        self,
        order: Order,
        instances: list[objects.Instance],
        filter_properties: dict[str, Any],
        **later: Any,
    ) -> None:
        """Have *instances* built (1.10), as the API and computes of Newton ask for it.

        With arguments that came *later* it is a reschedule (1.19), as computes since Queens ask.
        """
        self._client.prepare(version="1.19" if later else "1.10").cast(
            order.context,
            "build_instances",
            instances=instances,
            filter_properties=filter_properties,
            **order.arguments(),
            **later,
        )

    def schedule_and_build_instances(
        self,
        order: Order,
        build_requests: list[wire_objects.BuildRequest],
        request_specs: list[objects.RequestSpec],
    ) -> None:
        """Have new servers made and built (1.16), as the API since Ocata asks for it."""
        arguments = order.arguments()
        del arguments["security_groups"]  # they are in the requests
        self._client.prepare(version="1.16").cast(
            order.context,
            "schedule_and_build_instances",
            build_requests=build_requests,
            request_specs=request_specs,
            block_device_mapping=build_requests[0].block_device_mappings,
            **arguments,
        )

    def migrate_server(self, request: MoveRequest) -> None:
        """Have a server moved (1.13); raises NoValidHost, and other errors of the conductor."""
        with translated_errors():
            self._client.prepare(version="1.13").call(
                request.context, "migrate_server", **request.arguments()
            )

    def move_elsewhere(self, request: MoveRequest) -> None:
        """Have a server moved to another host after one has refused it: version 1.20."""
        self._client.prepare(version="1.20").cast(
            request.context, "migrate_server", **request.arguments(), host_list=request.host_list
        )


class OlderSchedulerAPI:
    """Casts to the schedulers in their second major version."""

    def __init__(self, transport: RPCTransport) -> None:
        self._client = client(transport, transport.conf.scheduler_topic, "2.9")

    def run_instance(self, context: RequestContext, **arguments: Any) -> None:
        """Have the instances of the request built on hosts that are found for them."""
        self._client.cast(context, "run_instance", **arguments)
