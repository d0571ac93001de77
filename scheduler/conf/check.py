"""Check every option at the start: a bad value may not wait for the first request.

Options that are accepted without effect are here, too.  The many options of Nova that a scheduler
never had are ignored silently.
"""

import contextlib
import logging as stdlib_logging
import math
import os
import re
import types
from collections.abc import Iterable, Iterator
from typing import Any, Final

from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import formatters
from oslo_log import log as logging

from scheduler import errors
from scheduler.conf import names

LOG = logging.getLogger(__name__)

# Numbers that an old release took although later ones refuse them (reference page config,
# section 10): with a minimum of the option itself an old file would stop the start.
MINIMA = (
    ("filter_scheduler", "host_subset_size", 1),
    ("DEFAULT", "periodic_fuzzy_delay", 0),
    ("DEFAULT", "report_interval", 0),
    ("DEFAULT", "reserved_host_memory_mb", 0),
    ("DEFAULT", "reserved_host_disk_mb", 0),
)

#: Drivers that ask filters.
FILTERING = ("filter_scheduler", "caching_scheduler")
#: Decisions of one worker keep one processor busy.
WORKERS_PER_PROCESSOR = 8

# oslo.config names the place in its message only.
BAD_VALUE = re.compile(
    r"Value for option (?P<option>\S+) from .*?detail='(?P<place>[^']*)'\) is not valid: "
    r"(?P<reason>.*)",
    re.DOTALL,
)

_HELP: Final = "No effect; accepted for old command lines."

#: Of old command lines (reference page service, section 9), so that old init scripts still start.
COMMAND_LINE: Final[list[cfg.Opt]] = [
    cfg.BoolOpt("verbose", short="v", default=False, help=_HELP),
    cfg.BoolOpt("watch-log-file", default=False, help=_HELP),
    cfg.StrOpt("log-format", help=_HELP),
]
REMOTE_DEBUG: Final[list[cfg.Opt]] = [cfg.StrOpt(name, help=_HELP) for name in ("host", "port")]

#: Names that a context of ours has for log lines, besides those of the library's.
_OF_OUR_CONTEXT: Final = (
    "instance_lock_checked quota_class read_deleted remote_address tenant timestamp user_id"
)

_MANAGER: Final = "nova.scheduler.manager.SchedulerManager"
_BACKENDS: Final = (
    "rabbit kombu fake nova.openstack.common.rpc.impl_kombu nova.rpc.impl_kombu "
    "nova.openstack.common.rpc.impl_fake nova.rpc.impl_fake"
)

#: Options of Nova, then of this project's older releases, that would change what a scheduler does:
#: group, option, the words that are as good as none, and what to do or to know.
WITHOUT_EFFECT: Final[tuple[tuple[str, cfg.Opt, str, str], ...]] = (
    ("cells", cfg.BoolOpt("enable"), "", "cells of the first version are not known here"),
    ("DEFAULT", cfg.BoolOpt("monkey_patch"), "", "functions are not wrapped"),
    (
        "conductor",
        cfg.StrOpt("topic", default="conductor"),
        "conductor",
        "conductors are asked on the topic conductor",
    ),
    ("DEFAULT", cfg.StrOpt("scheduler_manager"), _MANAGER, "the manager is always this project's"),
    ("DEFAULT", cfg.StrOpt("rpc_backend"), _BACKENDS, "messages go as transport_url says"),
    ("scheduler", cfg.StrOpt("standing_results_bytes"), "", "no results are kept between requests"),
    ("scheduler", cfg.StrOpt("broker_management_url"), "", "`broker check` asks the broker itself"),
)
#: The one of them by which a Nova with Placement decides.
DECIDING: Final = "[DEFAULT] scheduler_manager"
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


class _LibraryContext(oslo_context.RequestContext):
    def update_store(self) -> None:
        """Leave the thread the context that it has."""


def register_ignored(conf: cfg.ConfigOpts) -> None:
    """Register what has no effect; the command line of *conf* must not have been parsed yet."""
    # The library's own before its release 8 is one of them.
    conf.register_cli_opts([each for each in COMMAND_LINE if each.dest not in conf])
    conf.register_cli_opts(REMOTE_DEBUG, group="remote_debug")
    for group, option, _harmless, _instead in WITHOUT_EFFECT:
        conf.register_opt(option, group=names.section(group))


def validate(conf: cfg.ConfigOpts) -> None:
    """Check the value of every registered option and what must hold between them.

    Raises :class:`scheduler.errors.ConfigurationError` naming group, option and file.  Values
    that old releases allowed are replaced, each with a warning (reference page config,
    sections 5 and 10).  May be called again after the files were read again.
    """
    for error in problems(conf):
        raise error


def problems(conf: cfg.ConfigOpts) -> list[errors.ConfigurationError]:
    """Everything wrong; bad values get their defaults, so that more is found."""
    found = []
    conf.clear_override("service_down_time")  # which an earlier check may have replaced
    for group, name, _minimum in MINIMA:
        conf.clear_override(name, names.section(group))
    for group, name in names.registered(conf):
        if (error := _fault(conf, group, name)) is not None:
            found.append(error)
            default = names.option(group, name).default
            conf.set_override(name, default, names.section(group))
    _clamp(conf)
    _service_down_time(conf)
    return [*found, *_unusable_forms(conf), *_contradictions(conf)]


def questions(conf: cfg.ConfigOpts, paths: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Options that can be so and are probably not meant: each with what to say, and the place."""
    if not any(conf.filter_scheduler.enabled_filters) and conf.scheduler.driver in FILTERING:
        reason = "no filter is enabled, so any host will do for any server"
        yield "[filter_scheduler] enabled_filters", reason, ""
    most = WORKERS_PER_PROCESSOR * (os.cpu_count() or 1)
    if (conf.scheduler.workers or 0) > most:
        reason = f"{conf.scheduler.workers} processes, where {most} are more than enough"
        yield "[scheduler] workers", reason, ""
    for option, reason in (*_without_effect(conf), *_of_several_lines(conf)):
        yield option, reason, ""
    for setting in names.settings(paths):
        for instead, several in GONE.items():
            if setting.group == names.DEFAULT and setting.plain_name in several.split():
                yield f"[{setting.group}] {setting.name}", f"it is gone: {instead}", setting.place


def replaced(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str]]:
    """Options with another value than the files have, each with what to say; the start logs it."""
    for group, name, _least in (*MINIMA, (names.DEFAULT, "service_down_time", 0)):
        place = conf.get_location(name, names.section(group))
        if place is not None and place.location is cfg.Locations.set_override:
            value = names.value(conf, group, name)
            yield f"[{group}] {name}", f"it cannot be so low; {value} is used instead"


def _without_effect(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str]]:
    """Options that are set to something that would count, each with what to say."""
    for group, option, harmless, instead in WITHOUT_EFFECT:
        value = names.value(conf, group, option.dest)
        if value and value not in harmless.split():
            yield f"[{group}] {option.dest}", f"it has no effect here: {instead}"


def _of_several_lines(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str]]:
    """Texts of more than a line: an indented one may have been meant as an option."""
    for group, name in names.registered(conf):
        with contextlib.suppress(cfg.Error, ValueError):
            if "\n" in str(names.value(conf, group, name)):
                yield f"[{group}] {name}", "an indented line below it belongs to its value"


def _fault(conf: cfg.ConfigOpts, group: str, name: str) -> errors.ConfigurationError | None:
    """The error on the value of one option, which names its group; None if it is a good one."""
    option = f"[{group}] {name}"
    try:
        value = finite(names.value(conf, group, name))
    except (cfg.Error, ValueError) as error:
        reason = str(error)
        if (found := BAD_VALUE.fullmatch(reason)) is not None:
            option, reason = f"{option} ({found['place']})", found["reason"]
        return errors.ConfigurationError(option=option, reason=reason)
    if value is None:
        # An empty number is read as None, which few of them can be.
        known = names.option(group, name)
        if known.default is not None and isinstance(known.type, cfg.types.Number):
            return errors.ConfigurationError(option=option, reason="must not be empty")
    return None


def finite(value: Any) -> Any:
    """Return *value*; ValueError for a number that is infinite or none."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no finite number")
    return value


def _unusable_forms(conf: cfg.ConfigOpts) -> Iterator[errors.ConfigurationError]:
    """Forms that no log line can be written in; each gets its default."""
    fault = {"exc_info": (ValueError, ValueError(), None), "levelno": logging.DEBUG, "thread": 1}
    of_context = (*_LibraryContext().get_logging_values(), *_OF_OUR_CONTEXT.split())
    forms = {name: conf[name] for name in conf if name.startswith("logging_")}
    for name, form in forms.items():
        options = types.SimpleNamespace(**{**dict.fromkeys(forms, ""), name: form})
        try:
            for context in ({}, dict.fromkeys(of_context, "-")):
                record = stdlib_logging.makeLogRecord({**fault, "context": context})
                formatters.ContextFormatter(config=options).format(record)
        except (LookupError, TypeError, ValueError) as error:
            reason = f"no log line can have this form: {error}"
            yield errors.ConfigurationError(option=f"[{names.DEFAULT}] {name}", reason=reason)
            conf.set_override(name, names.option(names.DEFAULT, name).default)


def _contradictions(conf: cfg.ConfigOpts) -> Iterator[errors.ConfigurationError]:
    """Values that are legal by themselves and yet cannot work."""
    if "default_log_levels" in conf:  # of oslo.log, which not every caller registers
        try:
            levels_by_logger(conf.default_log_levels)
        except ValueError as error:
            option = "[DEFAULT] default_log_levels"
            yield errors.ConfigurationError(option=option, reason=str(error))
    if not conf.host:
        yield errors.ConfigurationError(option="[DEFAULT] host", reason="must not be empty")
    if conf.scheduler.max_attempts < 1:
        reason = "Invalid value for 'scheduler_max_attempts', must be >= 1"
        yield errors.ConfigurationError(option="[scheduler] max_attempts", reason=reason)
    if conf.scheduler.claims == "placement" and not conf.scheduler.accept_options_without_effect:
        for option, reason in _without_effect(conf):
            if option == DECIDING:
                instead = "[scheduler] accept_options_without_effect = true starts all the same"
                yield errors.ConfigurationError(option=option, reason=f"{reason}; {instead}")


def _clamp(conf: cfg.ConfigOpts) -> None:
    for group, name, minimum in MINIMA:
        number = names.value(conf, group, name)
        if number < minimum:
            text = "Option [%s] %s is %s, below its minimum; %s is used instead."
            LOG.warning(text, group, name, number, minimum)
            conf.set_override(name, minimum, names.section(group))


def _service_down_time(conf: cfg.ConfigOpts) -> None:
    down_time, interval = conf.service_down_time, conf.report_interval
    if down_time > interval:
        return
    default = names.option(names.DEFAULT, "service_down_time").default
    replacement = int(interval * 2.5) or default
    LOG.warning(
        "Report interval must be less than service down time. Current config: "
        "<service_down_time: %s, report_interval: %s>. Setting service_down_time to: %s",
        down_time,
        interval,
        replacement,
    )
    conf.set_override("service_down_time", replacement)


def levels_by_logger(pairs: Iterable[str]) -> dict[str, int]:
    """The level of each logger in items like ``name=LEVEL``; ValueError for one that is none."""
    levels = {}
    for pair in pairs:
        name, _separator, text = pair.partition("=")
        level = int(text) if text.isdigit() else stdlib_logging.getLevelNamesMapping().get(text)
        if not name or level is None:
            raise ValueError(f"{pair!r} is not of the form logger=LEVEL")
        levels[name] = level
    return levels
