"""What a scheduler of Havana's time tells compute hosts itself (reference page conductor, 8.2)."""

from __future__ import annotations

from typing import Any, Final

import oslo_messaging

from scheduler import objects
from scheduler.rpc.serializer import ObjectSerializer, RequestContextSerializer

RUN_INSTANCE_VERSION: Final = "2.37"
PREP_RESIZE_VERSION: Final = "2.43"


class ComputeClient:
    """Casts to compute hosts on *topic*, as Havana's did: in plain values, not in objects."""

    def __init__(self, transport: oslo_messaging.transport.RPCTransport, topic: str) -> None:
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(topic=topic, version=RUN_INSTANCE_VERSION),
            serializer=RequestContextSerializer(ObjectSerializer()),
        )

    def run_instance(
        self,
        ctxt: Any,
        instance: Any,
        host: str,
        request_spec: dict[str, Any] | None,
        filter_properties: dict[str, Any] | None,
        requested_networks: list[Any] | None,
        injected_files: list[Any] | None,
        admin_password: str | None,
        is_first_time: bool,
        node: str | None = None,
        legacy_bdm_in_spec: bool = True,
    ) -> None:
        """Tell *host* to build *instance*; what the context is to the filters stays here."""
        properties = {k: v for k, v in (filter_properties or {}).items() if k != "context"}
        self._client.prepare(server=host).cast(
            ctxt,
            "run_instance",
            instance=objects.to_plain(instance),
            request_spec=objects.to_plain(request_spec),
            filter_properties=objects.to_plain(properties),
            requested_networks=requested_networks,
            injected_files=injected_files,
            admin_password=admin_password,
            is_first_time=is_first_time,
            node=node,
            legacy_bdm_in_spec=legacy_bdm_in_spec,
        )

    def prep_resize(
        self,
        ctxt: Any,
        instance: Any,
        instance_type: dict[str, Any],
        image: dict[str, Any] | None,
        host: str,
        reservations: list[str] | None,
        request_spec: dict[str, Any],
        filter_properties: dict[str, Any],
        node: str | None,
    ) -> None:
        """Tell *host* to take *instance* over with its new size."""
        self._client.prepare(server=host, version=PREP_RESIZE_VERSION).cast(
            ctxt,
            "prep_resize",
            instance=instance,
            instance_type=objects.to_plain(instance_type),
            image=image,
            reservations=reservations,
            request_spec=objects.to_plain(request_spec),
            filter_properties=objects.to_plain(filter_properties),
            node=node,
        )
