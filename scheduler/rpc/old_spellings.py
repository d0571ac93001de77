"""What older releases called the options of oslo.messaging and oslo.concurrency.

The current libraries forgot these names and ignore them without a word.  Here they are taught to
their options as deprecated names, which gives them the precedence that all others have (reference
page config, sections 1.2, 6 and 9.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from oslo_concurrency import lockutils
from oslo_config import cfg, types
from oslo_log import log as logging
from oslo_messaging._drivers import amqp, impl_rabbit
from oslo_messaging.notify import notifier

LOG = logging.getLogger(__name__)

RABBIT: Final = "oslo_messaging_rabbit"
NOTIFICATIONS: Final = "oslo_messaging_notifications"
CONCURRENCY: Final = "oslo_concurrency"

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
    "amqp_auto_delete": _moved("amqp_auto_delete"),
    "rpc_conn_pool_size": _moved("rpc_conn_pool_size"),
    "kombu_reconnect_delay": _moved("kombu_reconnect_delay"),
    "rabbit_login_method": _moved("rabbit_login_method"),
    "rabbit_retry_interval": _moved("rabbit_retry_interval"),
    "rabbit_retry_backoff": _moved("rabbit_retry_backoff"),
    "rabbit_ha_queues": _moved("rabbit_ha_queues"),
}
OF_NOTIFICATIONS: Final[Names] = {
    "driver": _moved("notification_driver"),
    "topics": (*_moved("notification_topics"), ("rpc_notifier2", "topics")),
    "transport_url": _moved("notification_transport_url"),
}
OF_CONCURRENCY: Final[Names] = {
    "lock_path": _moved("lock_path"),
    "disable_process_locking": _moved("disable_process_locking"),
}

#: Values that were legal once: the library's limit, to which they are put.
LEAST_RETRY_INTERVAL: Final = 1
MOST_RECONNECT_DELAY: Final = 4.5
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


def teach() -> None:
    """Let the libraries' options know their former names; may be called again."""
    _teach([*impl_rabbit.rabbit_opts, *amqp.amqp_opts], OF_RABBIT)
    _teach(notifier._notifier_opts, OF_NOTIFICATIONS)
    _teach(lockutils._opts, OF_CONCURRENCY)
    for option in impl_rabbit.rabbit_opts:
        option.type = _WIDER.get(option.dest, option.type)


def _teach(options: Iterable[cfg.Opt], names: Names) -> None:
    for option in options:
        for group, name in names.get(option.dest, ()):
            old = cfg.DeprecatedOpt(name, group=group)
            if old not in option.deprecated_opts:
                option.deprecated_opts.append(old)


def register_concurrency(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.concurrency, which does so on the process-wide ones only."""
    conf.register_opts(lockutils._opts, group=CONCURRENCY)


def put_right(conf: cfg.ConfigOpts) -> None:
    """Translate values that were legal once, with a warning, where their options are registered."""
    if RABBIT in conf and "kombu_reconnect_delay" in conf[RABBIT]:
        rabbit = conf[RABBIT]
        if rabbit.kombu_reconnect_delay > MOST_RECONNECT_DELAY:
            _put(conf, "kombu_reconnect_delay", MOST_RECONNECT_DELAY)
        if rabbit.rabbit_retry_interval < LEAST_RETRY_INTERVAL:
            _put(conf, "rabbit_retry_interval", LEAST_RETRY_INTERVAL)
    if NOTIFICATIONS in conf and "driver" in conf[NOTIFICATIONS]:
        named = conf[NOTIFICATIONS].driver
        if any(each in DRIVERS for each in named):
            today = [DRIVERS.get(each, each) for each in named]
            conf.set_override("driver", today, group=NOTIFICATIONS)


def _put(conf: cfg.ConfigOpts, name: str, value: float) -> None:
    LOG.warning(
        "Option [%s] %s is %s, outside of its limits; %s is used instead.",
        RABBIT,
        name,
        conf[RABBIT][name],
        value,
    )
    conf.set_override(name, value, group=RABBIT)
