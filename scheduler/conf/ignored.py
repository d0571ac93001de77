"""Options that are accepted and have no effect.

Those of old command lines (reference page service, section 9), so that old init scripts still
start; and those of Nova that would change what a scheduler does, and of older releases of this
project, with a warning when they are set.
The many options of Nova that a scheduler never had are ignored silently.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from oslo_config import cfg

from scheduler import errors
from scheduler.conf import names

_HELP: Final = "No effect; accepted for old command lines."

COMMAND_LINE: Final[list[cfg.Opt]] = [
    cfg.BoolOpt("verbose", short="v", default=False, help=_HELP),
    cfg.BoolOpt("watch-log-file", default=False, help=_HELP),
    cfg.StrOpt("log-format", help=_HELP),
]
REMOTE_DEBUG: Final[list[cfg.Opt]] = [cfg.StrOpt(name, help=_HELP) for name in ("host", "port")]

_MANAGER: Final = "nova.scheduler.manager.SchedulerManager"

#: Group, option, the text that is as good as none, and what to do or to know.  Those of Nova, then
#: those of this project's older releases.
OPTIONS: Final[tuple[tuple[str, cfg.Opt, str, str], ...]] = (
    ("cells", cfg.BoolOpt("enable"), "", "cells of the first version are not known here"),
    ("DEFAULT", cfg.BoolOpt("monkey_patch"), "", "functions are not wrapped"),
    (
        "conductor",
        cfg.StrOpt("topic", default="conductor"),
        "conductor",
        "conductors are asked on the topic conductor",
    ),
    ("DEFAULT", cfg.StrOpt("scheduler_manager"), _MANAGER, "the manager is always this project's"),
    ("scheduler", cfg.StrOpt("standing_results_bytes"), "", "no results are kept between requests"),
    ("scheduler", cfg.StrOpt("broker_management_url"), "", "`broker check` asks the broker itself"),
)
#: By what is now: options of ``[DEFAULT]`` that schedulers had before Havana.
GONE: Final = {
    "the driver is [scheduler] driver": (
        "compute_scheduler_driver volume_scheduler_driver network_scheduler_driver "
        "default_scheduler_driver scheduler_default_driver"
    ),
    "weighers and their multipliers took its place, see [filter_scheduler]": (
        "least_cost_functions least_cost_scheduler_cost_functions noop_cost_fn_weight "
        "compute_fill_first_cost_fn_weight retry_host_cost_fn_weight"
    ),
    "filters ask each host what it has left": "max_cores max_gigabytes max_networks",
    "enable the filters that are to be asked": "skip_isolated_core_check",
}


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options on *conf*; its command line must not have been parsed yet."""
    # The library's own before its release 8 is one of them.
    conf.register_cli_opts([each for each in COMMAND_LINE if each.dest not in conf])
    conf.register_cli_opts(REMOTE_DEBUG, group="remote_debug")
    for group, option, _harmless, _instead in OPTIONS:
        conf.register_opt(option, group=names.section(group))


def gone(paths: Iterable[str]) -> Iterator[tuple[names.Setting, str]]:
    """The settings in the files *paths* of options that older schedulers had, and what is now."""
    for setting in names.settings(paths):
        for instead, several in GONE.items():
            if setting.group == names.DEFAULT and setting.plain_name in several.split():
                yield setting, instead


def without_effect(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str, str]]:
    """Options that are set to something that would count: group, name, and what is instead."""
    for group, option, harmless, instead in OPTIONS:
        value = names.value(conf, group, option.dest)
        if value and value != harmless:
            yield group, option.dest, instead


def refused(conf: cfg.ConfigOpts) -> Iterator[errors.ConfigurationError]:
    """An error for the one such option by which a Nova with Placement decides."""
    if conf.scheduler.claims != "placement" or conf.scheduler.accept_options_without_effect:
        return
    for group, name, instead in without_effect(conf):
        if name == "scheduler_manager":
            yield errors.ConfigurationError(
                option=f"[{group}] {name}",
                reason=f"it has no effect here: {instead}; "
                "[scheduler] accept_options_without_effect = true starts all the same",
            )
