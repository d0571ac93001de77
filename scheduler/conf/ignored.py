"""Options that are accepted and have no effect.

Those of old command lines (reference page service, section 9), so that old init scripts still
start; and those of Nova that would change what a scheduler does, with a warning when they are set.
The many options of Nova that a scheduler never had are ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler.conf import names

LOG = logging.getLogger(__name__)

_HELP: Final = "No effect; accepted for old command lines."

COMMAND_LINE: Final[list[cfg.Opt]] = [
    cfg.BoolOpt("verbose", short="v", default=False, help=_HELP),
    cfg.BoolOpt("watch-log-file", default=False, help=_HELP),
    cfg.StrOpt("log-format", help=_HELP),
]
REMOTE_DEBUG: Final[list[cfg.Opt]] = [cfg.StrOpt(name, help=_HELP) for name in ("host", "port")]


@dataclass(frozen=True)
class NoEffect:
    """An option of *group*, which values mean something in Nova, and what to do instead."""

    group: str
    option: cfg.Opt
    would_count: Callable[[Any], bool]
    instead: str


def _option(
    group: str,
    name: str,
    instead: str,
    kind: type[cfg.Opt] = cfg.BoolOpt,
    default: Any = False,
    would_count: Callable[[Any], bool] = bool,
) -> NoEffect:
    option = kind(name, default=default, help=f"No effect; {instead}")
    return NoEffect(group, option, would_count, instead)


_DISCOVER = "map new hosts with nova-manage cell_v2 discover_hosts, or by another nova-scheduler"
_MANAGERS = (None, "", "nova.scheduler.manager.SchedulerManager")

OPTIONS: Final = (
    _option("cells", "enable", "cells of the first version are not known here"),
    _option("DEFAULT", "monkey_patch", "functions are not wrapped"),
    _option("filter_scheduler", "pci_in_placement", "PciPassthroughFilter looks at devices"),
    _option(
        "scheduler",
        "query_placement_for_routed_network_aggregates",
        "Placement is not asked for the segments of networks",
    ),
    _option(
        "scheduler",
        "image_metadata_prefilter",
        "Placement is not asked for traits of images; ImagePropertiesFilter looks at them",
    ),
    _option(
        "scheduler",
        "discover_hosts_in_cells_interval",
        _DISCOVER,
        cfg.IntOpt,
        -1,
        lambda seconds: seconds >= 0,
    ),
    _option(
        "conductor",
        "topic",
        "conductors are asked on the topic conductor",
        cfg.StrOpt,
        "conductor",
        lambda topic: topic != "conductor",
    ),
    _option(
        "DEFAULT",
        "scheduler_manager",
        "the manager is always this project's",
        cfg.StrOpt,
        None,
        lambda path: path not in _MANAGERS,
    ),
)


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options on *conf*; its command line must not have been parsed yet."""
    conf.register_cli_opts(COMMAND_LINE)
    conf.register_cli_opts(REMOTE_DEBUG, group="remote_debug")
    for each in OPTIONS:
        conf.register_opt(each.option, group=names.section(each.group))


def warn(conf: cfg.ConfigOpts) -> None:
    """Log one line for each option that is set to something that counts in Nova."""
    for each in OPTIONS:
        name = each.option.dest
        if each.would_count(names.value(conf, each.group, name)):
            LOG.warning("Option [%s] %s has no effect here: %s.", each.group, name, each.instead)
