"""Asking any service for a sign of life (reference page rpc, section 8)."""

from __future__ import annotations

from typing import Any, Final

import oslo_messaging

from scheduler.rpc import remote_errors, versions
from scheduler.rpc.serializer import ObjectSerializer, RequestContextSerializer

NAMESPACE: Final = "baseapi"
VERSION: Final = "1.0"


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
            oslo_messaging.Target(topic=topic, namespace=NAMESPACE, version=VERSION),
            version_cap=versions.base_cap_from(transport.conf.upgrade_levels.baseapi),
            serializer=RequestContextSerializer(ObjectSerializer()),
            retry=retry,
        )

    def ping(self, context: Any, arg: Any, timeout_seconds: float | None = None) -> dict[str, Any]:
        """Ask any one listener; MessagingTimeout when there is none."""
        call = self._client.prepare(timeout=timeout_seconds)
        with remote_errors.translated():
            answer: dict[str, Any] = call.call(context, "ping", arg=arg)
        return answer
