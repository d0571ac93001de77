"""``[upgrade_levels]``: newest RPC version to speak.  Reference page config, section 5.4."""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup(
    "upgrade_levels",
    title="Upgrade levels",
    help="Caps on the RPC versions sent, for deployments in the middle of an upgrade.",
)


def _cap(service: str) -> cfg.Opt:
    return cfg.StrOpt(
        service,
        help=f"Newest version of the {service} RPC interface that may be sent: a version such as "
        "4.4, or the name of a release such as newton. Unset: the newest known.",
    )


OPTIONS = [_cap("scheduler"), _cap("conductor"), _cap("compute"), _cap("baseapi")]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
