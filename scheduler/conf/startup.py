"""The start of every program: options, files, logging (pages config, 1, service, 3, 6 and 9)."""

import contextlib
import functools
import importlib.util
import logging as stdlib_logging
import os
import pathlib
import re
import select
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from oslo_config import cfg
from oslo_log import log as logging
from oslo_reports import opts as report_options

import scheduler
from scheduler import concurrency, errors, exit_codes
from scheduler import conf as project_options
from scheduler.conf import check, claims, command_line, default, filter_scheduler, mistakes, names

LOG = logging.getLogger(__name__)

UNUSABLE = (cfg.Error, logging.LogConfigError, errors.ConfigurationError)

PROJECT = "nova"
SERVICE_OPTIONS = ("log_options", "graceful_shutdown_timeout")
"""Of oslo.service, which registers the same for itself."""
EMBEDDED_TRANSPORT_URL = "fake://"
_TRANSPORT_URL_VARIABLE = "OS_DEFAULT__TRANSPORT_URL"

#: Most time that a full pipe keeps everything waiting; a reader that is there needs less.
STDERR_MILLISECONDS = 1000
#: SQLAlchemy's link to its documentation, behind the text of an error.
_LINK = re.compile(r"\(Background on this error at: \S+\)")
PERSONAL_STATE_PATH = "~/.local/share/nova-scheduler"

# Today's library adds the global request id and the system scope to the line; without them it
# has the shape that log parsers written for Nova know (reference page service, section 6.1).
CONTEXT_FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[%(request_id)s %(user_identity)s] %(instance)s%(message)s"
)
USER_IDENTITY_FORMAT = "%(user)s %(project)s %(domain)s %(user_domain)s %(project_domain)s"

QUIETED_LOGGERS = ("oslo_config", "scheduler", "alembic", "amqp")


@dataclass(frozen=True)
class Source:
    argv: Sequence[str]
    prog: str
    #: Taken without ``--config-file`` and ``--config-dir``; None: those in the usual places.
    default_config_files: list[str] | None = None
    #: The program's own options of the command line.
    cli_opts: Sequence[cfg.Opt] = ()
    #: Commands, which are for people, log nothing below ERROR by default.  They need no options of
    #: the library that runs daemons, which takes long to load.
    is_daemon: bool = True


def named_files(source: Source) -> list[str]:
    """The files that *source* names, or else those that the usual places have."""
    named = concurrency.named_files(source.argv)
    if named or source.default_config_files is not None:
        return named or list(source.default_config_files or ())
    return [str(path) for path in cfg.find_config_files(PROJECT, source.prog)]


def fill(source: Source, into: cfg.ConfigOpts | None = None) -> cfg.ConfigOpts:
    """The configuration as it is now, values not checked; ConfigurationError names the file."""
    conf = cfg.ConfigOpts() if into is None else into
    try:
        with command_line.plainly(source.prog, source.cli_opts):
            _read(conf, source)
        _settle_logging(conf)
    except (cfg.Error, OSError, ValueError, RuntimeError) as error:
        raise errors.ConfigurationError(option="configuration", reason=str(error)) from error
    return conf


def parse(
    source: Source, conf: cfg.ConfigOpts = cfg.CONF, description: str | None = None
) -> cfg.ConfigOpts:
    """Fill *conf* from *source* and set up logging; *description* is what ``--help`` begins with.

    Whatever cannot be used ends the program: one line on stderr and the status of
    :data:`scheduler.exit_codes.CONFIGURATION`; a command line that is not understood ends it with
    ``USAGE``.
    """
    try:
        with command_line.plainly(source.prog, source.cli_opts):
            _read(conf, source, description)
        if not source.is_daemon:
            _log_on_terminal(conf)
        _settle_logging(conf)
        _set_up_logging(conf)
    except BrokenPipeError:
        raise
    except (*UNUSABLE, OSError, ValueError, RuntimeError) as error:
        fail(source.prog, error, named_files(source))
    try:
        check.validate(conf)
    except errors.ConfigurationError as error:
        if conf.log_file or conf.log_dir:
            LOG.critical("%s", error)
        fail(source.prog, error, used_files(conf))
    if source.is_daemon:
        warn_of_unknown(conf)
    return conf


def _log_on_terminal(conf: cfg.ConfigOpts) -> None:
    """Leave log and level that files name to daemons: who gives commands may not write there."""
    for name, value in {"log_file": None, "log_dir": None, "debug": False}.items():
        place = conf.get_location(name)
        if place is None or place.location is not cfg.Locations.command_line:
            conf.set_override(name, value)
    if not conf.debug:
        # Deprecated spellings are worth a warning from a daemon, not one with every command.
        quieted = [f"{name}=ERROR" for name in QUIETED_LOGGERS]
        conf.set_default("default_log_levels", [*conf.default_log_levels, *quieted])


def warn_of_unknown(conf: cfg.ConfigOpts) -> None:
    """Name options in the files that are unknown here, and those that are hardly meant so."""
    paths = used_files(conf)
    for option, reason, place in (*names.unknown(conf, paths), *check.questions(conf, paths)):
        LOG.warning("%s%s: %s", f"{place}: " if place else "", option, reason)


def _with_place(paths: Sequence[str], record: stdlib_logging.LogRecord) -> bool:
    """True; puts file and line before the library's lines on names of older releases.

    The last place where the name is set is the one that counts.
    """
    given = record.args
    if isinstance(given, Mapping) and "dep_option" in given:
        wanted = str(given["dep_group"]), str(given["dep_option"]).replace("-", "_")
        with contextlib.suppress(OSError, ValueError):
            for setting in names.settings(paths):
                if (setting.group, setting.plain_name) == wanted:
                    place = setting.place.replace("%", "%%")
                    record.msg = f"{place}: {str(record.msg).partition(': ')[2]}"
    return True


class _OneLine(stdlib_logging.Formatter):
    """*inner* without raw control characters: nobody's text looks like a line of its own."""

    def __init__(self, inner: stdlib_logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: stdlib_logging.LogRecord) -> str:
        """The line, and those of the traceback, which begin like it."""
        text, error = self._inner.format(record), sys.exc_info()[1]
        if error is not None and not record.exc_info and str(error) in record.getMessage():
            # The library adds the error that is being handled, which was said already.
            text = text.removesuffix(f": {getattr(record, 'error_summary', '')}")
        traceback = record.exc_text or ""
        first = text.removesuffix(traceback).removesuffix("\n")
        lines = [first, *(traceback.split("\n") if traceback else ())]
        if _LINK.search(text):
            lines = [_LINK.sub("", each).rstrip("\n") for each in lines]
        return "\n".join(map(errors.in_one_line, lines))


class _Patient(stdlib_logging.Filter):
    """Lets lines go that standard error does not take: a pipe that nobody reads stops nobody."""

    _wait_milliseconds = STDERR_MILLISECONDS

    def filter(self, record: stdlib_logging.LogRecord) -> bool:
        """Wait a while for room, and once there was none no more until there is some."""
        poll = concurrency.native("select").poll()
        poll.register(sys.__stderr__, select.POLLOUT)
        has_room = bool(poll.poll(self._wait_milliseconds))
        self._wait_milliseconds = STDERR_MILLISECONDS if has_room else 0
        return has_room


def _set_up_logging(conf: cfg.ConfigOpts) -> None:
    try:
        logging.setup(conf, PROJECT, scheduler.__version__)
    except (logging.LogConfigError, OSError, ValueError) as error:
        raise mistakes.unusable_log(conf, error) from error
    # To ask for the thread takes a fifth of a line's time under eventlet, and few formats name it.
    formats = [conf[name] for name in conf if name.startswith("logging_")]
    is_own = conf.use_json or conf.use_journal or conf.log_config_append
    stdlib_logging.logThreads = bool(is_own) or "thread" in "".join(map(str, formats))
    loggers = map(stdlib_logging.getLogger, ("", *stdlib_logging.root.manager.loggerDict))
    is_plain = conf.log_config_append or not (conf.use_json or conf.log_color)
    for handler in {each for logger in loggers for each in logger.handlers}:
        inner = handler.formatter or stdlib_logging.Formatter()
        if is_plain and not isinstance(inner, _OneLine):
            handler.setFormatter(_OneLine(inner))
        if getattr(handler, "stream", None) is sys.__stderr__ is not None:
            handler.addFilter(_Patient())


def _settle_logging(conf: cfg.ConfigOpts) -> None:
    for name in ("logging_context_format_string", "logging_user_identity_format"):
        # The library no longer fills in the tenant, which is the project.
        conf.clear_override(name)
        if "%(tenant)s" in conf[name]:
            conf.set_override(name, conf[name].replace("%(tenant)s", "%(project)s"))
    if conf.use_journal and importlib.util.find_spec("systemd") is None:
        reason = "the Python package systemd-python (Debian: python3-systemd) is not installed"
        raise errors.ConfigurationError(option="[DEFAULT] use_journal", reason=reason)
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        conf.set_default("use_stderr", True)  # the library would fall back to standard output


def change_log_levels(before: cfg.ConfigOpts, conf: cfg.ConfigOpts) -> None:
    """Log by levels and logging file of *conf*; ConfigurationError if the file cannot be used."""
    if conf.log_config_append or before.log_config_append:
        _set_up_logging(conf)
        return
    for name in check.levels_by_logger(before.default_log_levels):
        stdlib_logging.getLogger(name).setLevel(stdlib_logging.NOTSET)
    for name, level in check.levels_by_logger(conf.default_log_levels).items():
        stdlib_logging.getLogger(name).setLevel(level)
    stdlib_logging.getLogger().setLevel(stdlib_logging.DEBUG if conf.debug else stdlib_logging.INFO)


def _read(conf: cfg.ConfigOpts, source: Source, description: str | None = None) -> None:
    """Register all options and read what *source* names.

    The library itself ends the process, after some lines on stderr, for a bad command line.
    """
    _register(conf, source)
    library = stdlib_logging.getLogger("oslo_config.cfg")
    others = [f for f in library.filters if getattr(f, "func", None) is not _with_place]
    library.filters[:] = [*others, functools.partial(_with_place, named_files(source))]
    try:
        conf(
            list(source.argv),
            project=PROJECT,
            prog=source.prog,
            version=scheduler.__version__,
            usage=command_line.usage(source.cli_opts),
            default_config_files=source.default_config_files,
            description=description,
        )
        for folder in map(os.path.expanduser, conf.config_dir):
            if not os.access(folder, os.R_OK | os.X_OK):  # the library would find no files there
                reason = "this user may not read it"
                raise errors.ConfigurationError(option=f"--config-dir {folder}", reason=reason)
        claims.register_login(conf)
        filter_scheduler.set_default_chain(conf)
    except UnicodeDecodeError as error:
        raise mistakes.undecodable(named_files(source)) from error


def _register(conf: cfg.ConfigOpts, source: Source) -> None:
    conf.clear()
    logging.register_options(conf)
    check.register_ignored(conf)
    conf.register_cli_opts(source.cli_opts)
    if source.is_daemon:
        service = names.listed_defaults("oslo.service.service")
        conf.register_opts([each for each in service if each.dest in SERVICE_OPTIONS])
    report_options.set_defaults(conf)
    project_options.register_all(conf)
    conf.set_default("logging_context_format_string", CONTEXT_FORMAT)
    conf.set_default("logging_user_identity_format", USER_IDENTITY_FORMAT)
    conf.set_default("state_path", state_path())
    # Neither four lines on a schema's version, nor a stack of what is raised as well.
    levels = ("alembic=WARN", "oslo_db.sqlalchemy.exc_filters=CRITICAL")
    conf.set_default("default_log_levels", [*logging.get_default_log_levels(), *levels])


def state_path() -> str:
    """The packages' directory if this user may write there, else one in the user's home."""
    packaged = default.PACKAGED_STATE_PATH
    if os.path.isdir(packaged) and os.access(packaged, os.W_OK | os.X_OK):
        return packaged
    return str(pathlib.Path(PERSONAL_STATE_PATH).expanduser())


def fail(prog: str, reason: Exception, paths: Iterable[str]) -> NoReturn:
    """End the program because of its configuration: one line on stderr, CONFIGURATION as status."""
    sys.stderr.write(f"{prog}: error: {mistakes.line(reason, paths)}\n")
    raise SystemExit(exit_codes.CONFIGURATION)


def used_files(conf: cfg.ConfigOpts) -> list[str]:
    """The configuration files that *conf* was filled from, in the order they were read."""
    files = [str(path) for path in conf.config_file]
    for directory in conf.config_dir:
        files += [str(path) for path in sorted(pathlib.Path(directory).expanduser().glob("*.conf"))]
    return files


def is_embedded(conf: cfg.ConfigOpts, environ: Mapping[str, str] = os.environ) -> bool:
    """True without files and transport URL: the bus is then EMBEDDED_TRANSPORT_URL."""
    return not used_files(conf) and not environ.get(_TRANSPORT_URL_VARIABLE)
