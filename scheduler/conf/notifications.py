"""``[notifications]``: what is told on the notification bus.

Reference page config, section 6.3.
"""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup(
    "notifications",
    title="Notifications",
    help="Shape of the notifications; whether any are sent is decided by "
    "[oslo_messaging_notifications] driver.",
)

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "notification_format",
        default="unversioned",
        choices=[
            ("unversioned", "only the unversioned form"),
            ("versioned", "only the versioned form"),
            ("both", "both forms"),
        ],
        deprecated_opts=[cfg.DeprecatedOpt("notification_format", group="DEFAULT")],
        help="Form of the notifications. The scheduler's own notifications exist only in the "
        "unversioned form; with `versioned` they are not sent.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
