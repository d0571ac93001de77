"""``[metrics]``: MetricsFilter and MetricsWeigher.  Reference page config, section 4."""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup(
    "metrics", title="Metrics", help="What the metrics that compute hosts report are worth."
)

OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "weight_multiplier",
        default=1.0,
        help="MetricsWeigher: the normalised weight (0.0 to 1.0) is multiplied by this; 0.0 "
        "switches the weigher off.",
    ),
    cfg.ListOpt(
        "weight_setting",
        default=[],
        help="Metrics that count, as `name=ratio` items; a host's weight is the sum of value "
        "times ratio. MetricsFilter passes the hosts that report all of them. There must be no "
        "blank before the equals sign: it would belong to the name.",
    ),
    cfg.BoolOpt(
        "required",
        default=True,
        help="MetricsWeigher: whether a request fails when a host lacks one of the metrics. "
        "MetricsFilter keeps such hosts away from it.",
    ),
    cfg.FloatOpt(
        "weight_of_unavailable",
        default=-10000.0,
        help="MetricsWeigher: weight, before it is normalised, of a host that lacks one of the "
        "metrics, where required is false.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
