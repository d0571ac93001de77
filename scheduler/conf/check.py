"""Check every option at the start: a bad value may not wait for the first request."""

import logging as stdlib_logging
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.conf import ignored, names

LOG = logging.getLogger(__name__)

# Numbers that an old release took although later ones refuse them (reference page config,
# section 10): with a minimum of the option itself an old file would stop the start.
MINIMA = (
    ("filter_scheduler", "host_subset_size", 1),
    ("DEFAULT", "periodic_fuzzy_delay", 0),
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
    for group, name in names.registered(conf):
        try:
            _value(conf, group, name)
        except errors.ConfigurationError as error:
            found.append(error)
            default = names.option(group, name).default
            conf.set_override(name, default, names.section(group))
    for replace in (_clamp, _service_down_time):
        try:
            replace(conf)
        except errors.ConfigurationError as error:
            found.append(error)
    return [*found, *_contradictions(conf)]


def questions(conf: cfg.ConfigOpts, paths: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Options that can be so and are probably not meant: each with what to say, and the place."""
    if not any(conf.filter_scheduler.enabled_filters) and conf.scheduler.driver in FILTERING:
        reason = "no filter is enabled, so any host will do for any server"
        yield "[filter_scheduler] enabled_filters", reason, ""
    most = WORKERS_PER_PROCESSOR * (os.cpu_count() or 1)
    if (conf.scheduler.workers or 0) > most:
        reason = f"{conf.scheduler.workers} processes, where {most} are more than enough"
        yield "[scheduler] workers", reason, ""
    for group, name, instead in ignored.without_effect(conf):
        yield f"[{group}] {name}", f"it has no effect here: {instead}", ""
    for setting, instead in ignored.gone(paths):
        yield f"[{setting.group}] {setting.name}", f"it is gone: {instead}", setting.place


def _value(conf: cfg.ConfigOpts, group: str, name: str) -> Any:
    """The value of one option, with errors that name its group."""
    try:
        value = names.value(conf, group, name)
    except (cfg.Error, ValueError) as error:
        option, reason = f"[{group}] {name}", str(error)
        found = BAD_VALUE.fullmatch(reason)
        if found is not None:
            option, reason = f"{option} ({found['place']})", found["reason"]
        raise errors.ConfigurationError(option=option, reason=reason) from error
    if value is None:
        # An empty number is read as None, which few of them can be.
        known = names.option(group, name)
        if known.default is not None and isinstance(known.type, cfg.types.Number):
            raise errors.ConfigurationError(option=f"[{group}] {name}", reason="must not be empty")
    return value


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
    yield from ignored.refused(conf)


def _clamp(conf: cfg.ConfigOpts) -> None:
    for group, name, minimum in MINIMA:
        conf.clear_override(name, names.section(group))
        number = _value(conf, group, name)
        if number < minimum:
            text = "Option [%s] %s is %s, below its minimum; %s is used instead."
            LOG.warning(text, group, name, number, minimum)
            conf.set_override(name, minimum, names.section(group))


def _service_down_time(conf: cfg.ConfigOpts) -> None:
    conf.clear_override("service_down_time")
    down_time = _value(conf, "DEFAULT", "service_down_time")
    interval = _value(conf, "DEFAULT", "report_interval")
    if down_time > interval:
        return
    replacement = int(interval * 2.5)
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
