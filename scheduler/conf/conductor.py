"""``[conductor]``: the conductor stub.  Reference page config, section 5.3."""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup("conductor", title="Conductor", help="The conductor stub.")

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "workers",
        default=1,
        min=0,
        help="Number of worker processes of the conductor stub. 0: one per CPU.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
