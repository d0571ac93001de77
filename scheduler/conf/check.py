"""Check every option at the start: a bad value may not wait for the first request."""

from __future__ import annotations

import configparser
import logging as stdlib_logging
import re
from collections.abc import Iterator
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, plugins
from scheduler.conf import defaults, names

LOG = logging.getLogger(__name__)

# Numbers that an old release took although later ones refuse them (reference page config,
# section 10): with a minimum of the option itself an old file would stop the start.
MINIMA = (
    ("filter_scheduler", "host_subset_size", 1),
    ("DEFAULT", "periodic_fuzzy_delay", 0),
    ("DEFAULT", "reserved_host_memory_mb", 0),
    ("DEFAULT", "reserved_host_disk_mb", 0),
)

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
    _clamp(conf)
    _service_down_time(conf)
    read_all(conf)
    for refuse in REFUSALS:
        refuse(conf)


def problems(conf: cfg.ConfigOpts) -> list[errors.ConfigurationError]:
    """Everything that is wrong with single values, not only the first.

    Bad values are replaced by the defaults of their options, so that more can be looked at.
    """
    found = []
    for group, name in names.registered(conf):
        try:
            _value(conf, group, name)
        except errors.ConfigurationError as error:
            found.append(error)
            default = names.option(group, name).default
            conf.set_override(name, default, names.section(group))
    for refuse in (_clamp, _service_down_time, *REFUSALS):
        try:
            refuse(conf)
        except errors.ConfigurationError as error:
            found.append(error)
    return found


def read_all(conf: cfg.ConfigOpts) -> None:
    """Read the value of every option that is registered; raises ConfigurationError for a bad one.

    To be called again when more options have been registered.
    """
    for group, name in names.registered(conf):
        _value(conf, group, name)


def _value(conf: cfg.ConfigOpts, group: str, name: str) -> Any:
    """The value of one option, with errors that name its group."""
    try:
        value = names.value(conf, group, name)
    except (cfg.Error, ValueError) as error:
        raise _bad_value(error, group, name) from error
    if value is None:
        # An empty number is read as None, which few of them can be.
        option = names.option(group, name)
        if option.default is not None and isinstance(option.type, cfg.types.Number):
            raise errors.ConfigurationError(option=f"[{group}] {name}", reason="must not be empty")
    return value


def _bad_value(error: Exception, group: str, name: str) -> errors.ConfigurationError:
    """The library's *error* about a value, as one that names group, option and place."""
    found = BAD_VALUE.fullmatch(str(error))
    if found is None:
        return errors.ConfigurationError(option=f"[{group}] {name}", reason=str(error))
    return errors.ConfigurationError(
        option=f"[{group}] {name} ({found['place']})", reason=found["reason"]
    )


def _refuse_log_levels(conf: cfg.ConfigOpts) -> None:
    if "default_log_levels" not in conf:  # of oslo.log, which not every caller registers
        return
    try:
        defaults.levels_by_logger(conf.default_log_levels)
    except ValueError as error:
        option = "[DEFAULT] default_log_levels"
        raise errors.ConfigurationError(option=option, reason=str(error)) from error


def _refuse_empty_host(conf: cfg.ConfigOpts) -> None:
    if not conf.host:
        raise errors.ConfigurationError(option="[DEFAULT] host", reason="must not be empty")


def _refuse_no_attempts(conf: cfg.ConfigOpts) -> None:
    if conf.scheduler.max_attempts < 1:
        raise errors.ConfigurationError(
            option="[scheduler] max_attempts",
            reason="Invalid value for 'scheduler_max_attempts', must be >= 1",
        )


#: Checks of values that are legal by themselves and yet cannot work.
REFUSALS = (_refuse_log_levels, _refuse_empty_host, _refuse_no_attempts)


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


def logging_file_problems(path: str) -> Iterator[str]:
    """Problems of a logging file of Python's kind, without using it: use makes log files."""
    parser = configparser.ConfigParser()
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        for kind, section in (("loggers", "logger"), ("handlers", "handler")):
            yield from _missing(parser, path, kind, section)
        yield from _missing(parser, path, "formatters", "formatter", required=False)
        yield from _bad_classes(parser, path)
    except OSError as error:
        yield f"{path}: {error.strerror}"
    except (configparser.Error, ValueError) as error:
        yield f"{path}: {error}"


def _missing(
    parser: configparser.ConfigParser, path: str, kind: str, section: str, *, required: bool = True
) -> Iterator[str]:
    if not parser.has_option(kind, "keys"):
        if required:
            yield f"{path}: there is no [{kind}] with keys"
        return
    for name in parser.get(kind, "keys").split(","):
        wanted = f"{section}_{name.strip()}"
        if name.strip() and not parser.has_section(wanted):
            yield f"{path}: there is no [{wanted}]"


def _bad_classes(parser: configparser.ConfigParser, path: str) -> Iterator[str]:
    for section in parser.sections():
        name = parser.get(section, "class", raw=True, fallback=None)
        is_one = section.startswith(("handler_", "formatter_"))
        if is_one and name is not None and not _exists(name):
            yield f"{path}: [{section}] class: there is no {name}"


def _exists(name: str) -> bool:
    """True if the class is one of logging's own, or can be imported."""
    found: object = stdlib_logging
    for word in name.split("."):
        found = getattr(found, word, None)
    if found is not None:
        return True
    try:
        plugins.import_path(name)
    except (ImportError, ValueError):
        return False
    return True
