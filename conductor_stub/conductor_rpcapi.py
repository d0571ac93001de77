"""The casts and calls to the conductor (reference page conductor, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import oslo_messaging as messaging

from conductor_stub.records import Order
from scheduler import objects
from scheduler.rpc import remote_errors
from scheduler.rpc.context import RequestContext
from scheduler.rpc.serializer import ObjectSerializer, RequestContextSerializer

TOPIC = "conductor"
NAMESPACE = "compute_task"


@dataclass(frozen=True)
class MoveRequest:
    """One server that is to have *flavor* on another host.

    *filter_properties* tell of earlier attempts and of hosts to keep away from.
    """

    context: RequestContext
    instance: objects.Instance
    flavor: objects.Flavor
    filter_properties: dict[str, Any]
    request_spec: objects.RequestSpec | None = None
    clean_shutdown: bool = True

    def arguments(self) -> dict[str, Any]:
        """Those of ``migrate_server``."""
        return {
            "instance": self.instance,
            "scheduler_hint": {"filter_properties": self.filter_properties},
            "live": False,
            "rebuild": False,
            "flavor": self.flavor,
            "block_migration": None,
            "disk_over_commit": None,
            "reservations": None,
            "clean_shutdown": self.clean_shutdown,
            "request_spec": self.request_spec,
        }


class ComputeTaskAPI:
    """Speaks to topic ``conductor``, namespace ``compute_task``.

    *retry* is how often a broker that cannot be reached is tried again; None: for ever.
    """

    def __init__(self, transport: messaging.Transport, retry: int | None = None) -> None:
        target = messaging.Target(topic=TOPIC, namespace=NAMESPACE, version="1.0")
        serializer = RequestContextSerializer(ObjectSerializer())
        self._client = messaging.get_rpc_client(
            transport, target, serializer=serializer, retry=retry
        )

    def build_instances(
        self, order: Order, instances: list[objects.Instance], filter_properties: dict[str, Any]
    ) -> None:
        """Have hosts found for *instances*, which are then built there: version 1.10, Newton's.

        So ask the API for a first build and a Newton compute for a retry.
        """
        self._cast("1.10", order, instances, filter_properties)

    def schedule_and_build_instances(
        self,
        order: Order,
        build_requests: list[objects.BuildRequest],
        request_specs: list[objects.RequestSpec],
    ) -> None:
        """Have hosts found for new servers, which are made and built there: version 1.17.

        So asks the API for a first build since Ocata.
        """
        self._client.prepare(version="1.17").cast(
            order.context,
            "schedule_and_build_instances",
            build_requests=build_requests,
            request_specs=request_specs,
            image=order.image,
            admin_password=order.admin_password,
            injected_files=order.injected_files,
            requested_networks=order.requested_networks,
            block_device_mapping=build_requests[0].block_device_mappings,
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
        """Have *instance* built on one of the alternates in *host_list*: version 1.19.

        So asks a compute of Queens or later after a failed build, with the request and the list
        it was given.
        """
        self._cast(
            "1.19",
            order,
            [instance],
            filter_properties,
            request_spec=request_spec,
            host_lists=[host_list],
        )

    def migrate_server(self, request: MoveRequest) -> None:
        """Have a server moved, as its user asks: version 1.13; returns when its host was told.

        Raises NoValidHost when there is none, and what else went wrong.
        """
        with remote_errors.translated():
            self._client.prepare(version="1.13").call(
                request.context, "migrate_server", **request.arguments()
            )

    def move_elsewhere(
        self, request: MoveRequest, host_list: list[objects.Selection] | None
    ) -> None:
        """Have a server moved to another host after one has refused it: version 1.20."""
        self._client.prepare(version="1.20").cast(
            request.context, "migrate_server", **request.arguments(), host_list=host_list
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
            image=order.image,
            filter_properties=filter_properties,
            admin_password=order.admin_password,
            injected_files=order.injected_files,
            requested_networks=order.requested_networks,
            security_groups=order.security_groups,
            **later,
        )
