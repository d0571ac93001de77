"""Options of oslo.messaging and oslo.concurrency under the names that older releases gave them.

The current libraries forgot these names and ignore them without a word.  Copies of their options
that have them as deprecated names are registered before the libraries register their own, which
gives the names the precedence that all others have (reference page config, 1.2, 6 and 9.2).
RabbitMQ's address as Havana and Newton spelt it becomes a URL.
"""

import functools
from collections.abc import Mapping
from typing import Any, Final
from urllib import parse

import oslo_messaging
from oslo_concurrency import opts as concurrency_options
from oslo_config import cfg, types
from oslo_log import log as logging
from oslo_messaging import opts as messaging_options
from oslo_utils import netutils

LOG = logging.getLogger(__name__)

CONTROL_EXCHANGE: Final = "nova"
RABBIT: Final = "oslo_messaging_rabbit"
NOTIFICATIONS: Final = "oslo_messaging_notifications"
CONCURRENCY: Final = "oslo_concurrency"

PREFETCHED_REQUESTS: Final = 16
"""Requests that the broker hands a worker beyond those that are worked on.

Without such a limit, which the library leaves to the configuration, the first worker gets all that
is waiting."""

Names = Mapping[str, tuple[tuple[str, str], ...]]
"""By the name of today: groups and names of older releases."""


def _renamed(name: str) -> tuple[tuple[str, str], ...]:
    return ((RABBIT, name), ("DEFAULT", name))


def _moved(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple(("DEFAULT", name) for name in names)


OF_RABBIT: Final[Names] = {
    "ssl": _renamed("rabbit_use_ssl"),
    "ssl_version": _renamed("kombu_ssl_version"),
    "ssl_key_file": _renamed("kombu_ssl_keyfile"),
    "ssl_cert_file": _renamed("kombu_ssl_certfile"),
    "ssl_ca_file": _renamed("kombu_ssl_ca_certs"),
    "amqp_durable_queues": _moved("amqp_durable_queues", "rabbit_durable_queues"),
    **{
        name: _moved(name)
        for name in (
            *("amqp_auto_delete", "rpc_conn_pool_size", "kombu_reconnect_delay"),
            *("rabbit_login_method", "rabbit_retry_interval", "rabbit_retry_backoff"),
            "rabbit_ha_queues",
        )
    },
}
NAMES: Final[Mapping[str | None, Names]] = {
    RABBIT: OF_RABBIT,
    NOTIFICATIONS: {
        "driver": _moved("notification_driver"),
        "topics": (*_moved("notification_topics"), ("rpc_notifier2", "topics")),
        "transport_url": _moved("notification_transport_url"),
    },
    CONCURRENCY: {name: _moved(name) for name in ("lock_path", "disable_process_locking")},
}
DEFAULTS: Final = {(RABBIT, "rabbit_qos_prefetch_count"): PREFETCHED_REQUESTS}

#: Values that were legal once: the library's limit, to which they are put.
LIMITS: Final = {"kombu_reconnect_delay": (min, 4.5), "rabbit_retry_interval": (max, 1)}
_WIDER: Final[Mapping[str, types.ConfigType]] = {
    "kombu_reconnect_delay": types.Float(min=0),
    "rabbit_retry_interval": types.Integer(min=0),
}

_HAVANA: Final = "nova.openstack.common.notifier."
DRIVERS: Final = {
    f"{_HAVANA}rpc_notifier": "messaging",
    f"{_HAVANA}rpc_notifier2": "messagingv2",
    f"{_HAVANA}log_notifier": "log",
    f"{_HAVANA}no_op_notifier": "noop",
    f"{_HAVANA}test_notifier": "test",
}


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return the options of both libraries by group, with all names and this project's defaults."""
    oslo_messaging.set_transport_defaults(CONTROL_EXCHANGE)
    found = [*messaging_options.list_opts(), *concurrency_options.list_opts()]
    for group, options in found:
        for option in options:
            for former, name in NAMES.get(group, {}).get(option.dest, ()):
                option.deprecated_opts.append(cfg.DeprecatedOpt(name, group=former))
            option.type = _WIDER.get(option.dest, option.type)
            if (group, option.dest) in DEFAULTS:
                option.default = DEFAULTS[group, option.dest]
    return found


def register(conf: cfg.ConfigOpts, *groups: str | None) -> None:
    """Register the options of *groups*, or of all, on *conf* before the libraries do."""
    for group, options in list_opts():
        if groups and group not in groups:
            continue
        if group == CONCURRENCY and group in conf:  # the library does so when it is imported
            try:
                conf.unregister_opts(options, group)
            except cfg.ArgsAlreadyParsedError:
                continue  # this project was first, or it is too late
        for option in options:
            kind: Any = type(option)
            option.__class__ = _by_name(kind)
        conf.register_opts(options, group)


@functools.cache
def _by_name(kind: Any) -> Any:
    """Make a class of options equal to all of their name: the library can register its own."""

    def equals(self: cfg.Opt, other: object) -> bool:
        return isinstance(other, cfg.Opt) and self.dest == other.dest

    def differs(self: cfg.Opt, other: object) -> bool:
        return not equals(self, other)

    more = {"__eq__": equals, "__ne__": differs, "__hash__": kind.__hash__}
    return type(kind.__name__, (kind,), more)


def put_right(conf: cfg.ConfigOpts) -> None:
    """Translate values that were legal once, with a warning, where their options are registered."""
    for name, (limited, limit) in LIMITS.items():
        if RABBIT not in conf or name not in conf[RABBIT]:
            continue
        value = conf[RABBIT][name]
        if value != limited(value, limit):
            text = "Option [%s] %s is %s, outside of its limits; %s is used instead."
            LOG.warning(text, RABBIT, name, value, limit)
            conf.set_override(name, limit, group=RABBIT)
    if NOTIFICATIONS in conf and "driver" in conf[NOTIFICATIONS]:
        named = conf[NOTIFICATIONS].driver
        if any(each in DRIVERS for each in named):
            today = [DRIVERS.get(each, each) for each in named]
            conf.set_override("driver", today, group=NOTIFICATIONS)


# --- RabbitMQ's address of old (reference page config, section 6.2) ---------------------------

FAKE_URL: Final = "fake://"
DEFAULT_PORT: Final = 5672
FAKE_BACKENDS: Final = ("fake", "nova.openstack.common.rpc.impl_fake", "nova.rpc.impl_fake")
BACKEND: Final = cfg.StrOpt("rpc_backend")
ADDRESS: Final[list[cfg.Opt]] = [
    cfg.StrOpt("rabbit_host"),
    cfg.PortOpt("rabbit_port"),
    cfg.ListOpt("rabbit_hosts"),
    cfg.StrOpt("rabbit_userid"),
    cfg.StrOpt("rabbit_password", secret=True),
    cfg.StrOpt("rabbit_virtual_host"),
    cfg.BoolOpt("fake_rabbit", default=False),
]
for _option in ADDRESS:
    _option.deprecated_opts.append(cfg.DeprecatedOpt(_option.name, group="DEFAULT"))


def list_former_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """The options by group, for whoever names all that are read; not in the sample."""
    return [(RABBIT, ADDRESS), (None, [BACKEND])]


def url_from_options(conf: cfg.ConfigOpts) -> str | None:
    """The transport URL that the old options amount to; None when none of them is set."""
    conf.register_opts(ADDRESS, group=RABBIT)
    conf.register_opt(BACKEND)
    old = conf[RABBIT]
    if old.fake_rabbit or conf.rpc_backend in FAKE_BACKENDS:
        return FAKE_URL
    named = (old.rabbit_host, old.rabbit_port, old.rabbit_hosts, old.rabbit_userid)
    if not any((*named, old.rabbit_password, old.rabbit_virtual_host)):
        return None
    hosts = old.rabbit_hosts or [netutils.escape_ipv6(old.rabbit_host or "localhost")]
    user = parse.quote(old.rabbit_userid or "guest", "")
    password = parse.quote(old.rabbit_password or "guest", "")
    places = []
    for host in hosts:
        name, port = netutils.parse_host_port(host, old.rabbit_port or DEFAULT_PORT)
        places.append(f"{user}:{password}@{netutils.escape_ipv6(name)}:{port}")
    return f"rabbit://{','.join(places)}/{parse.quote(virtual_host(conf), '')}"


def virtual_host(conf: cfg.ConfigOpts) -> str:
    """The virtual host that the old option names; empty for the broker's default."""
    conf.register_opts(ADDRESS, group=RABBIT)
    name: str | None = conf[RABBIT].rabbit_virtual_host
    return "" if name is None or name == "/" else name
