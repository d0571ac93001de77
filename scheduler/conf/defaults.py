"""Defaults that this project gives to options of the libraries, and those that need a look around.

An operator's own setting wins over all of them.
"""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Iterable

from oslo_config import cfg
from oslo_log import log

from scheduler.conf import default

PERSONAL_STATE_PATH = "~/.local/share/nova-scheduler"

# Today's library adds the global request id and the system scope to the line; without them it
# has the shape that log parsers written for Nova know (reference page service, section 6.1).
CONTEXT_FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[%(request_id)s %(user_identity)s] %(instance)s%(message)s"
)
USER_IDENTITY_FORMAT = "%(user)s %(project)s %(domain)s %(user_domain)s %(project_domain)s"

QUIETED_LOGGERS = ("oslo_config", "scheduler", "alembic", "amqp")
# A daemon that looks at its schema's version is not worth four lines.
CALMED_LOGGERS = ("alembic",)


def state_path() -> str:
    """The packages' directory if this user may write there, else one in the user's home."""
    if os.path.isdir(default.PACKAGED_STATE_PATH) and os.access(
        default.PACKAGED_STATE_PATH, os.W_OK | os.X_OK
    ):
        return default.PACKAGED_STATE_PATH
    return str(pathlib.Path(PERSONAL_STATE_PATH).expanduser())


def apply(conf: cfg.ConfigOpts) -> None:
    """Set the defaults on *conf*, whose options must be registered."""
    conf.set_default("logging_context_format_string", CONTEXT_FORMAT)
    conf.set_default("logging_user_identity_format", USER_IDENTITY_FORMAT)
    conf.set_default("state_path", state_path())
    calmed = [f"{name}=WARN" for name in CALMED_LOGGERS]
    conf.set_default("default_log_levels", [*log.get_default_log_levels(), *calmed])


def quiet_log_levels(conf: cfg.ConfigOpts) -> list[str]:
    """The configured levels per logger, and ERROR for everything a command would say of itself.

    Deprecated spellings are worth a warning from a daemon, not one with every command.
    """
    return [*conf.default_log_levels, *(f"{name}=ERROR" for name in QUIETED_LOGGERS)]


def levels_by_logger(pairs: Iterable[str]) -> dict[str, int]:
    """The level of each logger in items like ``name=LEVEL``; ValueError for one that is none."""
    levels = {}
    for pair in pairs:
        name, _separator, text = pair.partition("=")
        level = int(text) if text.isdigit() else logging.getLevelNamesMapping().get(text)
        if not name or level is None:
            raise ValueError(f"{pair!r} is not of the form logger=LEVEL")
        levels[name] = level
    return levels


def translate_log_formats(conf: cfg.ConfigOpts) -> None:
    """Let an old format's ``%(tenant)s`` mean the project, as the library no longer fills it in."""
    for name in ("logging_context_format_string", "logging_user_identity_format"):
        conf.clear_override(name)
        text = conf[name]
        if "%(tenant)s" in text:
            conf.set_override(name, text.replace("%(tenant)s", "%(project)s"))
