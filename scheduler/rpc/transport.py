"""Connections to the message bus (reference pages rpc, section 15, and config, section 6).

oslo.messaging reads some of its options from the process-wide ``cfg.CONF`` whatever it is given,
so *conf* is that object in every real process.  For a URL that cannot be used each function raises
ConfigurationError, without passwords.
"""

import contextlib
import importlib
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import amqp
import oslo_messaging
from oslo_config import cfg
from oslo_messaging.transport import NotificationTransport, RPCTransport
from oslo_utils import strutils

from scheduler import errors
from scheduler.conf import names, startup
from scheduler.rpc import connection, library_options

OPTION: Final = "[DEFAULT] transport_url"
NOTIFICATION_OPTION: Final = "[oslo_messaging_notifications] transport_url"
IN_PROCESS: Final = "fake"
TRACING: Final = "oslo_messaging_tracing"
TRACING_OPTION: Final = f"[{TRACING}] tracing_enabled"
#: Module of the library's exporter, by ``otlp_protocol``; it does not import them itself.
EXPORTERS: Final = {
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
}
#: Seeming end of an address, with another one behind it; a query has = before an @.
_TWO_ADDRESSES: Final = re.compile(r"://[^/?#]*[/?#](@|[^=]*@[^/@]*[:/])")
_ENCODED: Final = "@ : / ? # in a password are %40 %3A %2F %3F %23"
#: Errors by which a broker refuses a login or virtual host: trying again is no use.
REFUSALS: Final = (amqp.IrrecoverableConnectionError, amqp.IrrecoverableChannelError)

# Nova's exceptions need not be importable here: the client rebuilds this project's errors from
# the library's RemoteError, so the library is to rebuild none.
REBUILT_MODULES: Final[tuple[str, ...]] = ()

AnyTransport = TypeVar("AnyTransport", RPCTransport, NotificationTransport)


def set_defaults(conf: cfg.ConfigOpts = cfg.CONF) -> None:
    """Register the library's options on *conf*, with former names and this project's defaults."""
    connection.install()
    library_options.register(conf, *library_options.NAMES)


def get_transport(conf: cfg.ConfigOpts) -> RPCTransport:
    """The transport for calls; nothing connects before its first use."""
    return _get(oslo_messaging.get_rpc_transport, conf, OPTION)


def get_notification_transport(conf: cfg.ConfigOpts) -> NotificationTransport:
    """The transport for notifications: a bus of their own if one is configured."""
    return _get(oslo_messaging.get_notification_transport, conf, NOTIFICATION_OPTION)


def is_in_process(conf: cfg.ConfigOpts) -> bool:
    """True when the bus is the one inside this process, which no other process can reach."""
    with _translated(OPTION, conf):
        return bool(oslo_messaging.TransportURL.parse(conf).transport == IN_PROCESS)


def parsed_url(conf: cfg.ConfigOpts) -> oslo_messaging.TransportURL:
    """The address of the bus; options in its query part are in force in *conf* from now on."""
    set_defaults(conf)
    with _translated(OPTION, conf):
        url = oslo_messaging.TransportURL.parse(conf)
        for name, value in url.query.items():
            conf.set_override(name, value, group=library_options.RABBIT)
    library_options.put_right(conf)
    return url


def complete(conf: cfg.ConfigOpts) -> None:
    """Give *conf*, which no transport was made from, the library's options and the default URL."""
    connection.install()
    library_options.register(conf)
    with _translated(OPTION, conf):
        library_options.put_right(conf)


def load_span_exporter(conf: cfg.ConfigOpts) -> None:
    """Import what the library's spans need, if wanted; releases before 18 cannot trace."""
    if TRACING not in conf or not conf[TRACING].tracing_enabled:
        return
    conf.set_default("tracing_service_name", conf.prog, group=TRACING)
    try:
        importlib.import_module(EXPORTERS[conf[TRACING].otlp_protocol])
    except ModuleNotFoundError as error:
        reason = f"{error.name} is not installed; pip install 'nova-scheduler-standalone[tracing]'"
        raise errors.ConfigurationError(option=TRACING_OPTION, reason=reason) from error


def flush_spans(conf: cfg.ConfigOpts) -> None:
    """Send the spans that the library keeps back for some seconds."""
    if TRACING in conf and conf[TRACING].tracing_enabled:
        provider = importlib.import_module("opentelemetry.trace").get_tracer_provider()
        if hasattr(provider, "force_flush"):  # not the one from before the first span
            provider.force_flush()


def _get(factory: Callable[..., AnyTransport], conf: cfg.ConfigOpts, option: str) -> AnyTransport:
    set_defaults(conf)
    with _translated(option, conf):
        made = factory(conf, allowed_remote_exmods=REBUILT_MODULES)
    library_options.put_right(conf)
    return made


@contextlib.contextmanager
def _translated(option: str, conf: cfg.ConfigOpts) -> Iterator[None]:
    """Within it there is a URL; errors about it are raised as a ConfigurationError of *option*."""
    try:
        _apply_default_url(conf)
        is_other = option == NOTIFICATION_OPTION
        url = conf.oslo_messaging_notifications.transport_url if is_other else conf.transport_url
        if _TWO_ADDRESSES.search(url or ""):
            raise ValueError(f"an address ends within its password; {_ENCODED}")
        yield
    except (oslo_messaging.MessagingException, cfg.NoSuchOptError, ValueError) as error:
        text = re.sub("://.*@", "://***@", str(error))  # of a URL that is broken, too
        if text.startswith("invalid literal for int()"):  # it may quote a part of the password
            text = f"a port or number is not an integer; {_ENCODED}"
        reason = strutils.mask_password(text)
        raise errors.ConfigurationError(option=option, reason=reason) from error


def _apply_default_url(conf: cfg.ConfigOpts) -> None:
    """Give the URL a default where none is configured, and a virtual host where it has no path.

    They are what the options of Havana and Newton say, or the in-process bus when nobody
    configured anything at all, else the library's own: RabbitMQ on this machine.
    """
    given = oslo_messaging.TransportURL.parse(conf)  # registers the option as well
    if names.is_set(conf, names.DEFAULT, "transport_url"):
        if given.virtual_host is None and (name := library_options.virtual_host(conf)):
            given.virtual_host = name
            conf.set_override("transport_url", str(given))
        return
    url = library_options.url_from_options(conf)
    if url is None and startup.is_embedded(conf):
        url = startup.EMBEDDED_TRANSPORT_URL
    if url is not None:
        conf.set_default("transport_url", url)
