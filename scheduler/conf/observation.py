"""``[explain]``, ``[metrics_endpoint]``, ``[notifications]``: what a scheduler shows and sends."""

from oslo_config import cfg

EXPLAIN = cfg.OptGroup("explain", title="Explain", help="Records of decisions.")

EXPLAIN_OPTIONS: list[cfg.Opt] = [
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
        "database_kept_days", default=7, min=1, help="How many days records stay in the database."
    ),
    cfg.IntOpt(
        "database_kept_records",
        default=100_000,
        min=1,
        help="How many records stay in the database at most, the latest; about 5 KiB each.",
    ),
]

RECORDING = cfg.OptGroup(
    "recording", title="Recording", help="Recordings of decisions, for `recording` and `replay`."
)

RECORDING_OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Whether each worker writes its decisions to files, with all that they depend on: "
        "requests, answers, changes of hosts. No request waits for that.",
    ),
    cfg.StrOpt(
        "directory",
        default="/var/lib/nova-scheduler/recording",
        help="Directory of the files, which must be there and writable.",
    ),
    cfg.IntOpt(
        "keep_hours", default=48, min=1, help="How many hours files are kept after their end."
    ),
    cfg.IntOpt(
        "max_megabytes",
        default=1024,
        min=8,
        help="Most megabytes that all files of the directory may have; the oldest go first.",
    ),
]

METRICS_ENDPOINT = cfg.OptGroup(
    "metrics_endpoint",
    title="Metrics endpoint",
    help="An HTTP server in the daemon, one address for all workers: `/metrics` (Prometheus), "
    "`/healthz`, `/readyz`. It answers GET and HEAD only and changes nothing; whoever can reach it "
    "sees host names and request ids, so put a proxy that asks for a password before it where "
    "others than operators can.",
)

METRICS_ENDPOINT_OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Serve metrics and health. When the address cannot be listened on, the daemon does "
        "not start.",
    ),
    cfg.HostAddressOpt(
        "host",
        default="127.0.0.1",
        help="Address or name to listen on; the default can only be reached from this machine. "
        "`0.0.0.0` or `::` for every address.",
    ),
    cfg.PortOpt(
        "port",
        default=9642,
        help="TCP port to listen on; every scheduler daemon of a machine needs its own. 0: any "
        "that is free, which the log then names.",
    ),
    cfg.ListOpt(
        "allowed_hosts",
        default=[],
        help="Names and addresses that may be asked, besides `localhost`, `host` and the name of "
        "this machine: those in the URLs of Prometheus or of a proxy, for instance "
        "`sched1.example.org`. Any other name is refused (403), against DNS rebinding. Any address "
        "may be asked unless some are listed here. `*`: any name.",
    ),
    cfg.FloatOpt(
        "stuck_seconds",
        default=60.0,
        min=1.0,
        help="`/healthz` fails when a request has not moved for so many seconds although others "
        "do, or nothing at all moves.",
    ),
]

NOTIFICATIONS = cfg.OptGroup(
    "notifications",
    title="Notifications",
    help="Shape of the notifications; whether any are sent is decided by "
    "[oslo_messaging_notifications] driver.",
)

NOTIFICATIONS_OPTIONS: list[cfg.Opt] = [
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
        help="The most notifications that may wait for the bus in each worker. Requests never "
        "wait: while the bus takes none ([oslo_messaging_notifications] retry, by default for "
        "ever), further notifications are dropped and counted in a warning.",
    ),
]
