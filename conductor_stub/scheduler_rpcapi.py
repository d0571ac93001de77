"""The scheduler as computes of Havana's time see it (reference page conductor, section 13)."""

from __future__ import annotations

from typing import Any

import oslo_messaging as messaging

from scheduler.rpc.context import RequestContext
from scheduler.rpc.serializer import ObjectSerializer, RequestContextSerializer

RUN_INSTANCE_VERSION = "2.9"


class OlderSchedulerAPI:
    """Casts to the schedulers in their second major version."""

    def __init__(self, transport: messaging.Transport) -> None:
        topic = transport.conf.scheduler_topic
        target = messaging.Target(topic=topic, version=RUN_INSTANCE_VERSION)
        serializer = RequestContextSerializer(ObjectSerializer())
        self._client = messaging.get_rpc_client(transport, target, serializer=serializer)

    def run_instance(self, context: RequestContext, **arguments: Any) -> None:
        """Have the instances of the request built on hosts that are found for them."""
        self._client.cast(context, "run_instance", **arguments)
