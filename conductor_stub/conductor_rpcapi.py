"""Casts and calls to the conductor and to older schedulers (page conductor, sections 2, 13)."""

from __future__ import annotations

from typing import Any

import oslo_messaging as messaging

from conductor_stub.records import MoveRequest, Order
from scheduler import objects
from scheduler.rpc.client import translated_errors
from scheduler.rpc.context import RequestContext
from scheduler.rpc.messages import RequestContextSerializer

TOPIC = "conductor"
NAMESPACE = "compute_task"


class ComputeTaskAPI:
    """Topic ``conductor``, ``compute_task``; *retry* limits attempts to reach the broker."""

    def __init__(self, transport: messaging.Transport, retry: int | None = None) -> None:
        target = messaging.Target(topic=TOPIC, namespace=NAMESPACE, version="1.0")
        serializer = RequestContextSerializer()
        self._client = messaging.get_rpc_client(
            transport, target, serializer=serializer, retry=retry
        )

    def build_instances(
        self, order: Order, instances: list[objects.Instance], filter_properties: dict[str, Any]
    ) -> None:
        """Have *instances* built (1.10), as the API and computes of Newton ask for it."""
        self._cast("1.10", order, instances, filter_properties)

    def schedule_and_build_instances(
        self,
        order: Order,
        build_requests: list[objects.BuildRequest],
        request_specs: list[objects.RequestSpec],
    ) -> None:
        """Have new servers made and built (1.17), as the API since Ocata asks for it."""
        arguments = order.arguments()
        del arguments["security_groups"]  # they are in the requests
        self._client.prepare(version="1.17").cast(
            order.context,
            "schedule_and_build_instances",
            build_requests=build_requests,
            request_specs=request_specs,
            block_device_mapping=build_requests[0].block_device_mappings,
            **arguments,
            tags=objects.TagList(),
        )

    def rebuild_elsewhere(
        self,
        order: Order,
        instance: objects.Instance,
        filter_properties: dict[str, Any],
        request_spec: objects.RequestSpec | dict[str, Any],
        host_list: list[objects.Selection] | None,
    ) -> None:
        """Have *instance* built on an alternate (1.19), as computes since Queens ask for it."""
        self._cast(
            "1.19",
            order,
            [instance],
            filter_properties,
            request_spec=request_spec,
            host_lists=[host_list],
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

    def _cast(
        self,
        version: str,
        order: Order,
        instances: list[objects.Instance],
        filter_properties: dict[str, Any],
        **later: Any,
    ) -> None:
        self._client.prepare(version=version).cast(
            order.context,
            "build_instances",
            instances=instances,
            filter_properties=filter_properties,
            **order.arguments(),
            **later,
        )


RUN_INSTANCE_VERSION = "2.9"


class OlderSchedulerAPI:
    """Casts to the schedulers in their second major version."""

    def __init__(self, transport: messaging.Transport) -> None:
        topic = transport.conf.scheduler_topic
        target = messaging.Target(topic=topic, version=RUN_INSTANCE_VERSION)
        serializer = RequestContextSerializer()
        self._client = messaging.get_rpc_client(transport, target, serializer=serializer)

    def run_instance(self, context: RequestContext, **arguments: Any) -> None:
        """Have the instances of the request built on hosts that are found for them."""
        self._client.cast(context, "run_instance", **arguments)
