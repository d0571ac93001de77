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
        help="Form of the notifications: plain dicts under `scheduler.<host>`, versioned objects "
        "under `nova-scheduler:<host>`, or both.",
    ),
    cfg.ListOpt(
        "versioned_notifications_topics",
        default=["versioned_notifications"],
        help="Topics of the versioned form; those of the unversioned form are in "
        "[oslo_messaging_notifications] topics.",
    ),
    cfg.IntOpt(
        "max_waiting",
        default=1000,
        min=1,
        help="How many notifications may wait for the bus in each worker. Requests never wait: "
        "while the bus takes none ([oslo_messaging_notifications] retry, by default for ever), "
        "what comes on top is dropped, with a warning that counts.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
