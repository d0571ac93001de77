"""Clients, caps on versions, remote errors (pages rpc, 3 and 5, and conductor, 8.2)."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from scheduler import errors, objects
from scheduler.rpc.context import RequestContextSerializer, get_admin_context

RUN_INSTANCE_VERSION: Final = "2.37"
PREP_RESIZE_VERSION: Final = "2.43"

INTROSPECTION: Final = "introspection"
"""The namespace of what workers are asked by (docs/rpc.md, introspection)."""
INTROSPECTION_VERSION: Final = "1.0"

SHADOW: Final = "-shadow"
"""End of the name of a shadow, after that of its host."""

RELEASE_CAPS: Final = {
    "grizzly": "2.6",
    "havana": "2.9",
    "icehouse": "3.0",
    "juno": "3.0",
    "kilo": "4.2",
    "liberty": "4.2",
    "mitaka": "4.3",
    "newton": "4.3",
    "ocata": "4.3",
    "pike": "4.4",
}
"""Versions of the scheduler's interface; from Queens on there is nothing to cap."""


def version_cap(conf: cfg.ConfigOpts, interface: str) -> str | None:
    """The cap in ``[upgrade_levels]`` *interface*, or None; raises ConfigurationError."""
    value: str | None = conf.upgrade_levels[interface]
    releases = RELEASE_CAPS if interface == "scheduler" else {}
    version = releases.get(value or "", value) or None
    if version is None or re.fullmatch(r"\d+\.\d+", version):
        return version
    reason = f"{value!r} is not a version such as 4.4"
    if releases:
        known = ", ".join(releases)
        reason = f"{value!r} is neither a version such as 4.4 nor one of {known}"
    raise errors.ConfigurationError(option=f"[upgrade_levels] {interface}", reason=reason)


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Within it a RemoteError of one of our classes is raised as that class.

    It has the remote message; its keyword arguments stay there.  Any other error passes as it is.
    """
    try:
        yield
    except oslo_messaging.RemoteError as error:
        cls = getattr(errors, error.exc_type or "", None)
        if not (isinstance(cls, type) and issubclass(cls, errors.NovaException)):
            raise
        raise cls(error.value) from error


def client(
    transport: RPCTransport,
    topic: str,
    version: str | None = None,
    namespace: str | None = None,
    **options: Any,
) -> oslo_messaging.RPCClient:
    """The library's client of *topic*, for this project's contexts and objects."""
    target = oslo_messaging.Target(topic=topic, version=version, namespace=namespace)
    serializer = RequestContextSerializer()
    return oslo_messaging.get_rpc_client(transport, target, serializer=serializer, **options)


def worker_topic(conf: cfg.ConfigOpts) -> str:
    """The topic below which every worker has a queue of its own."""
    return f"{conf.scheduler_topic}_worker"


def worker_name(host: str, number: int) -> str:
    """The server name of worker *number*, from 1 on, of the daemon on *host*."""
    return f"{host}.{number}"


class WorkerClient:
    """Calls to single workers; an absent broker is tried *retry* times more; None: for ever."""

    def __init__(
        self, transport: RPCTransport, conf: cfg.ConfigOpts, retry: int | None = None
    ) -> None:
        self._client = client(
            transport,
            worker_topic(conf),
            INTROSPECTION_VERSION,
            INTROSPECTION,
            transport_options=oslo_messaging.TransportOptions(at_least_once=True),
            retry=retry,
        )

    def ask(
        self, host: str, number: int, method: str, timeout_seconds: float, **arguments: Any
    ) -> Any:
        """The answer of worker *number* on *host*.

        Raises MessageUndeliverable at once where there is no such worker, MessagingTimeout where
        it is silent, errors of this project as themselves.
        """
        server = worker_name(host, number)
        call = self._client.prepare(server=server, timeout=timeout_seconds)
        with translated_errors():
            return call.call(get_admin_context(), method, **arguments)


class ComputeClient:
    """Casts to compute hosts on *topic*, as Havana's did: in plain values, not in objects."""

    def __init__(self, transport: RPCTransport, topic: str) -> None:
        self._client = client(transport, topic)

    def run_instance(
        self, ctxt: Any, host: str, *, filter_properties: dict[str, Any] | None, **arguments: Any
    ) -> None:
        """Tell *host* to build an instance; what the context is to the filters stays here."""
        properties = {k: v for k, v in (filter_properties or {}).items() if k != "context"}
        arguments = {"node": None, "legacy_bdm_in_spec": True, **arguments}
        plain = objects.to_plain({**arguments, "filter_properties": properties})
        call = self._client.prepare(server=host, version=RUN_INSTANCE_VERSION)
        call.cast(ctxt, "run_instance", **plain)

    def prep_resize(self, ctxt: Any, host: str, *, instance: Any, **arguments: Any) -> None:
        """Tell *host* to take *instance*, which may be an object, over with its new size."""
        call = self._client.prepare(server=host, version=PREP_RESIZE_VERSION)
        call.cast(ctxt, "prep_resize", instance=instance, **objects.to_plain(arguments))
