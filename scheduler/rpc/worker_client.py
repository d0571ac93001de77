"""Asking one worker of one daemon, by its number (docs/rpc.md, introspection)."""

from __future__ import annotations

from typing import Any, Final

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from scheduler.rpc import remote_errors
from scheduler.rpc.context import get_admin_context
from scheduler.rpc.serializer import ObjectSerializer, RequestContextSerializer

NAMESPACE: Final = "introspection"
VERSION: Final = "1.0"


def worker_topic(conf: cfg.ConfigOpts) -> str:
    """The topic below which every worker has a queue of its own."""
    return f"{conf.scheduler_topic}_worker"


def worker_name(host: str, number: int) -> str:
    """The server name of worker *number*, from 1 on, of the daemon on *host*."""
    return f"{host}.{number}"


class WorkerClient:
    """Calls to single workers.

    A broker that cannot be reached is tried *retry* times more; None is for ever.
    """

    def __init__(
        self, transport: RPCTransport, conf: cfg.ConfigOpts, retry: int | None = None
    ) -> None:
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(topic=worker_topic(conf), namespace=NAMESPACE, version=VERSION),
            serializer=RequestContextSerializer(ObjectSerializer()),
            transport_options=oslo_messaging.TransportOptions(at_least_once=True),
            retry=retry,
        )

    def ask(
        self, host: str, number: int, method: str, timeout_seconds: float, **arguments: Any
    ) -> Any:
        """What worker *number* on *host* answers.

        Raises MessageUndeliverable at once where there is no such worker, MessagingTimeout where
        it is silent, errors of this project as themselves.
        """
        server = worker_name(host, number)
        call = self._client.prepare(server=server, timeout=timeout_seconds)
        with remote_errors.translated():
            return call.call(get_admin_context(), method, **arguments)
