"""``[claims]``: where claims are kept, and for how long."""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup("claims", title="Claims", help="What schedulers promise, for all to see.")

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="The database for `[scheduler] claims = database`, as a URL like that of `[database] "
        "connection`. Unset: the database of that option, which must then have been made by "
        "`nova-scheduler-manage db sync`. Set it where that one is a real Nova's. All schedulers "
        "and conductors of a fleet must name the same.",
    ),
    cfg.IntOpt(
        "expiry_seconds",
        default=600,
        min=1,
        help="After how many seconds a host is free again that was promised to a server which "
        "never showed up, neither there nor elsewhere. It must be longer than a server may wait "
        "for a busy compute host.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
