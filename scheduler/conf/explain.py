"""``[explain]``: what is kept of decisions, to say why they were taken."""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup("explain", title="Explain", help="Why servers went where they went.")

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "memory_bytes",
        default=32 * 1024 * 1024,
        min=0,
        help="Memory, in bytes per worker, for the records of the latest decisions, which "
        "`nova-scheduler-manage explain` shows. 0: none are kept, and `explain` finds nothing.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
