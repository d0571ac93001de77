"""Command-line options that older releases had: accepted so that old init scripts still start.

Reference page service, section 9.
"""

from __future__ import annotations

from oslo_config import cfg

REMOTE_DEBUG = "remote_debug"

_HELP = "No effect; accepted for old command lines."

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "verbose",
        short="v",
        default=False,
        help=_HELP,
    ),
    cfg.BoolOpt(
        "watch-log-file",
        default=False,
        help=_HELP,
    ),
    cfg.StrOpt(
        "log-format",
        help=_HELP,
    ),
]

REMOTE_DEBUG_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        name,
        help=_HELP,
    )
    for name in ("host", "port")
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the dropped options on *conf*; its command line must not have been parsed yet."""
    conf.register_cli_opts(OPTIONS)
    conf.register_cli_opts(REMOTE_DEBUG_OPTIONS, group=REMOTE_DEBUG)
