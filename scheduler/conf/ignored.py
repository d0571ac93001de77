"""Options that are accepted and have no effect.

Those of old command lines (reference page service, section 9), so that old init scripts still
start; and those of Nova that would change what a scheduler does, with a warning when they are set.
The many options of Nova that a scheduler never had are ignored silently.
"""

from collections.abc import Callable
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


#: Switches of Nova, and what to do instead.
SWITCHES: Final = {
    ("cells", "enable"): "cells of the first version are not known here",
    ("DEFAULT", "monkey_patch"): "functions are not wrapped",
    ("filter_scheduler", "pci_in_placement"): "PciPassthroughFilter looks at devices",
    (
        "scheduler",
        "query_placement_for_routed_network_aggregates",
    ): "Placement is not asked for the segments of networks",
    (
        "scheduler",
        "image_metadata_prefilter",
    ): "Placement is not asked for traits of images; ImagePropertiesFilter looks at them",
}
_DISCOVER = "map new hosts with nova-manage cell_v2 discover_hosts, or by another nova-scheduler"
_MANAGERS = (None, "", "nova.scheduler.manager.SchedulerManager")
#: Group, option, what to do instead, and the values that mean something in Nova.
OPTIONS: Final[tuple[tuple[str, cfg.Opt, str, Callable[[Any], bool]], ...]] = (
    *(
        (group, cfg.BoolOpt(name, default=False), do, bool)
        for (group, name), do in SWITCHES.items()
    ),
    (
        "scheduler",
        cfg.IntOpt("discover_hosts_in_cells_interval", default=-1),
        _DISCOVER,
        lambda seconds: seconds >= 0,
    ),
    (
        "conductor",
        cfg.StrOpt("topic", default="conductor"),
        "conductors are asked on the topic conductor",
        lambda topic: topic != "conductor",
    ),
    (
        "DEFAULT",
        cfg.StrOpt("scheduler_manager"),
        "the manager is always this project's",
        lambda path: path not in _MANAGERS,
    ),
)


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options on *conf*; its command line must not have been parsed yet."""
    conf.register_cli_opts(COMMAND_LINE)
    conf.register_cli_opts(REMOTE_DEBUG, group="remote_debug")
    for group, option, _instead, _counts in OPTIONS:
        conf.register_opt(option, group=names.section(group))


def warn(conf: cfg.ConfigOpts) -> None:
    """Log one line for each option that is set to something that counts in Nova."""
    for group, option, instead, counts in OPTIONS:
        if counts(names.value(conf, group, option.dest)):
            LOG.warning("Option [%s] %s has no effect here: %s.", group, option.dest, instead)
