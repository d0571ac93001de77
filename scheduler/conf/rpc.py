"""``[DEFAULT]`` options of remote calls beyond oslo.messaging's own.

Reference page config, section 6.1.
"""

from __future__ import annotations

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "scheduler_topic",
        default="scheduler",
        help="Topic of the schedulers, and so the name of their queues, for deployments that "
        "changed it before Pike. All callers must use the same.",
    ),
    cfg.StrOpt(
        "compute_topic",
        default="compute",
        help="Topic of the compute hosts for drivers that tell them to build, as Nova's drivers "
        "did until Icehouse. The conductor tells them on `compute`, whatever is set here.",
    ),
    cfg.IntOpt(
        "long_rpc_timeout",
        default=1800,
        min=0,
        help="Seconds a caller waits for the answer to a call that may take long, such as "
        "select_destinations, as long as the other side shows every rpc_response_timeout "
        "seconds that it is alive.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options on *conf*."""
    conf.register_opts(OPTIONS)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """The options, for the sample file."""
    return [("DEFAULT", OPTIONS)]
