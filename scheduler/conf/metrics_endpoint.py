"""``[metrics_endpoint]``: where metrics, health and the status page are served."""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup(
    "metrics_endpoint",
    title="Metrics endpoint",
    help="An HTTP server in the daemon, one address for all workers: `/metrics` (Prometheus), "
    "`/healthz`, `/readyz`. It answers GET and HEAD only and changes nothing; whoever can reach it "
    "sees host names and request ids, so put a proxy that asks for a password before it where "
    "others than operators can.",
)

OPTIONS: list[cfg.Opt] = [
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
        help="Names, beside addresses, `localhost`, `host` and the name of this machine, by which "
        "the server may be asked: those in the URLs of Prometheus or of a proxy, for instance "
        "`sched1.example.org`. Any other is refused (403), so that no page of others can read this "
        "server by means of a name that it lets resolve to this machine. `*`: any name.",
    ),
    cfg.FloatOpt(
        "stuck_seconds",
        default=60.0,
        min=1.0,
        help="`/healthz` fails when a request has not moved for so many seconds although others "
        "do, or nothing at all moves.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
