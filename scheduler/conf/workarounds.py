"""``[workarounds]``: Nova's switches for fleets that are between two ways.

Reference page config, section 6.
"""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup("workarounds", title="Workarounds", help="For fleets in transition.")

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "disable_fallback_pcpu_query",
        default=False,
        help="With `[scheduler] claims = placement`: ask for hosts with CPUs for pinning (PCPU) "
        "only. Otherwise hosts that report all their CPUs as VCPU are asked for as well, for "
        "servers with pinned CPUs.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
