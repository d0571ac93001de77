"""RabbitMQ's address as Havana and Newton spelt it (reference page config, section 6.2).

The current oslo.messaging no longer knows these options and ignores them without a word.
"""

from __future__ import annotations

from typing import Final
from urllib import parse

from oslo_config import cfg
from oslo_utils import netutils

GROUP: Final = "oslo_messaging_rabbit"
FAKE_URL: Final = "fake://"
FAKE_BACKENDS: Final = ("fake", "nova.openstack.common.rpc.impl_fake", "nova.rpc.impl_fake")


def _with_old_group(name: str) -> list[cfg.DeprecatedOpt]:
    return [cfg.DeprecatedOpt(name, group="DEFAULT")]


OPTIONS: Final = [
    cfg.StrOpt("rabbit_host", deprecated_opts=_with_old_group("rabbit_host")),
    cfg.PortOpt("rabbit_port", default=5672, deprecated_opts=_with_old_group("rabbit_port")),
    cfg.ListOpt("rabbit_hosts", deprecated_opts=_with_old_group("rabbit_hosts")),
    cfg.StrOpt("rabbit_userid", deprecated_opts=_with_old_group("rabbit_userid")),
    cfg.StrOpt("rabbit_password", secret=True, deprecated_opts=_with_old_group("rabbit_password")),
    cfg.StrOpt("rabbit_virtual_host", deprecated_opts=_with_old_group("rabbit_virtual_host")),
    cfg.BoolOpt("fake_rabbit", default=False, deprecated_opts=_with_old_group("fake_rabbit")),
]
BACKEND_OPTION: Final = cfg.StrOpt("rpc_backend")


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """The options by group, for whoever names all that are read; not in the sample."""
    return [(GROUP, OPTIONS), (None, [BACKEND_OPTION])]


def url_from_options(conf: cfg.ConfigOpts) -> str | None:
    """The transport URL that the old options amount to; None when none of them is set."""
    conf.register_opts(OPTIONS, group=GROUP)
    conf.register_opt(BACKEND_OPTION)
    old = conf[GROUP]
    if old.fake_rabbit or conf.rpc_backend in FAKE_BACKENDS:
        return FAKE_URL
    named = (old.rabbit_host, old.rabbit_hosts, old.rabbit_userid, old.rabbit_password)
    if not any(named) and old.rabbit_virtual_host is None:
        return None
    hosts = old.rabbit_hosts or [netutils.escape_ipv6(old.rabbit_host or "localhost")]
    user = parse.quote(old.rabbit_userid or "guest", "")
    password = parse.quote(old.rabbit_password or "guest", "")
    places = ",".join(f"{user}:{password}@{_place(host, old.rabbit_port)}" for host in hosts)
    return f"rabbit://{places}/{_path(old.rabbit_virtual_host)}"


def _place(host: str, default_port: int) -> str:
    name, port = netutils.parse_host_port(host, default_port)
    return f"{netutils.escape_ipv6(name)}:{port}"


def _path(virtual_host: str | None) -> str:
    return "" if virtual_host in (None, "/") else parse.quote(virtual_host or "", "")
