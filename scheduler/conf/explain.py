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
    cfg.BoolOpt(
        "database",
        default=False,
        help="Write the records to the database of `[database] connection` as well, where every "
        "scheduler of the fleet finds them, also after a restart. Only where the tables were made "
        "by `nova-scheduler-manage db sync`, never in a Nova's. Requests do not wait for it.",
    ),
    cfg.IntOpt(
        "database_kept_days",
        default=7,
        min=1,
        help="How many days records stay in the database.",
    ),
    cfg.IntOpt(
        "database_kept_records",
        default=100_000,
        min=1,
        help="How many records stay in the database at most, the latest; about 5 KiB each.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
