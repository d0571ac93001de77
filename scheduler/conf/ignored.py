"""Options that are accepted and have no effect.

Those of old command lines (reference page service, section 9), so that old init scripts still
start; and those of Nova that would change what a scheduler does, and of older releases of this
project, with a warning when they are set.
The many options of Nova that a scheduler never had are ignored silently.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

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

_STATELESS: Final = "no results are kept between requests"
_NO_API: Final = "`broker check` asks the broker itself"
_MANAGERS: Final = (None, "", "nova.scheduler.manager.SchedulerManager")

#: Group, option, the values that would count, and what to do or to know.  Those of Nova, then those
#: of this project's older releases.
OPTIONS: Final[tuple[tuple[str, cfg.Opt, Callable[[Any], bool], str], ...]] = (
    ("cells", cfg.BoolOpt("enable"), bool, "cells of the first version are not known here"),
    ("DEFAULT", cfg.BoolOpt("monkey_patch"), bool, "functions are not wrapped"),
    (
        "conductor",
        cfg.StrOpt("topic", default="conductor"),
        lambda topic: topic != "conductor",
        "conductors are asked on the topic conductor",
    ),
    (
        "DEFAULT",
        cfg.StrOpt("scheduler_manager"),
        lambda path: path not in _MANAGERS,
        "the manager is always this project's",
    ),
    ("scheduler", cfg.StrOpt("standing_results_bytes"), bool, _STATELESS),
    ("scheduler", cfg.StrOpt("broker_management_url"), bool, _NO_API),
)


_DRIVER: Final = "the driver is [scheduler] driver"
_WEIGHERS: Final = "weighers and their multipliers took its place, see [filter_scheduler]"
#: Options of ``[DEFAULT]`` that schedulers had before Havana, and what is now.
GONE: Final = {
    **dict.fromkeys(
        ("compute_scheduler_driver", "volume_scheduler_driver", "network_scheduler_driver"), _DRIVER
    ),
    **dict.fromkeys(("default_scheduler_driver", "scheduler_default_driver"), _DRIVER),
    **dict.fromkeys(
        (
            *("least_cost_functions", "least_cost_scheduler_cost_functions"),
            *("compute_fill_first_cost_fn_weight", "noop_cost_fn_weight"),
            "retry_host_cost_fn_weight",
        ),
        _WEIGHERS,
    ),
    **dict.fromkeys(
        ("max_cores", "max_gigabytes", "max_networks"), "filters ask each host what it has left"
    ),
    "skip_isolated_core_check": "enable the filters that are to be asked",
}

#: Those of Nova that change its decisions.
DECIDING: Final = frozenset(("scheduler_manager",))


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options on *conf*; its command line must not have been parsed yet."""
    # The library's own before its release 8 is one of them.
    conf.register_cli_opts([each for each in COMMAND_LINE if each.dest not in conf])
    conf.register_cli_opts(REMOTE_DEBUG, group="remote_debug")
    for group, option, _counts, _instead in OPTIONS:
        conf.register_opt(option, group=names.section(group))


def gone(paths: Iterable[str]) -> Iterator[tuple[names.Setting, str]]:
    """The settings in the files *paths* of options that older schedulers had, and what is now."""
    for setting in names.settings(paths):
        instead = GONE.get(setting.plain_name) if setting.group == names.DEFAULT else None
        if instead is not None:
            yield setting, instead


def refused(conf: cfg.ConfigOpts) -> Iterator[errors.ConfigurationError]:
    """An error for each such option by which a Nova with Placement decides."""
    options = conf.scheduler
    if options.claims != "placement" or options.accept_options_without_effect:
        return
    for group, name, instead in without_effect(conf):
        if name in DECIDING:
            yield errors.ConfigurationError(
                option=f"[{group}] {name}",
                reason=f"it has no effect here: {instead}; "
                "[scheduler] accept_options_without_effect = true starts all the same",
            )


def without_effect(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str, str]]:
    """Options that are set to something that would count: group, name, and what is instead."""
    for group, option, counts, instead in OPTIONS:
        if counts(names.value(conf, group, option.dest)):
            yield group, option.dest, instead
