"""One list of checks of a configuration, for the start and for ``config validate``.

A check yields the problems it finds.  The start ends with the first one, and ``config validate``
names them all.  No secret is shown, and nothing is written.
"""

import configparser
import enum
import functools
import json
import os
import pathlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import broker as message_broker
from scheduler import errors, exit_codes, plugins
from scheduler.claims import loading
from scheduler.conf import check, mistakes, names, startup
from scheduler.conf.effective import masked
from scheduler.db import inspection, migration
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases
from scheduler.drivers.loading import driver_class, host_manager_class
from scheduler.explain import store
from scheduler.filters.registry import load_filters
from scheduler.pci.aliases import parse_aliases
from scheduler.rpc import transport
from scheduler.rpc.client import version_cap
from scheduler.web import server
from scheduler.weights.registry import load_weighers

LOG = logging.getLogger(__name__)

BROKER_SECONDS: Final = 10
#: Clocks that differ by more cannot be right; it is far below any ``service_down_time``.
CLOCK_SECONDS: Final = 5
#: An IPv6 address in a URL, where its last number would be taken for a port.
_BARE_IPV6: Final = re.compile(r"[@,/][0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*(?=[,/]|$)")
_NOT_WRITABLE: Final = "is not a directory that this user may write to"
NOTIFICATION_DRIVERS: Final = "oslo.messaging.notify.drivers"
#: Errors of files that are missing or cannot be parsed.
_UNREADABLE: Final = (
    *(cfg.ConfigFilesNotFoundError, cfg.ConfigFilesPermissionDeniedError),
    *(cfg.ConfigDirNotFoundError, cfg.ConfigFileParseError, UnicodeDecodeError),
)


class Kind(enum.IntEnum):
    """Subject of a problem, and the exit status of ``config validate`` for it."""

    FILE = exit_codes.CONFIG_FILE
    OPTION = exit_codes.CONFIG_OPTION
    PLUGIN = exit_codes.CONFIG_PLUGIN
    DATABASE = exit_codes.CONFIG_DATABASE
    BROKER = exit_codes.CONFIG_BROKER
    SURROUNDINGS = exit_codes.CONFIG_SURROUNDINGS
    #: Something that can be so, and is probably not meant.
    QUESTION = exit_codes.OK


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: *option* is ``[group] name`` or what else is to be looked at."""

    kind: Kind
    option: str
    reason: str
    #: File and line; empty where nothing is set.
    place: str = ""
    #: Error that the start raises.
    error: Exception | None = field(default=None, compare=False)

    @property
    def fields(self) -> dict[str, str]:
        kind, reason = self.kind.name.lower(), masked(mistakes.plain(self.reason))
        return {"kind": kind, "place": self.place, "option": self.option, "reason": reason}


def problem_of(kind: Kind, error: Exception) -> Problem:
    """Describe *error* as a problem, with the option it names."""
    kwargs = getattr(error, "kwargs", {})
    if isinstance(error, errors.ConfigurationError):
        return Problem(kind, str(kwargs["option"]), str(kwargs["reason"]), error=error)
    return Problem(kind, kind.name.lower(), str(error), error=error)


def attempt(kind: Kind, option: str, build: Callable[[], Any]) -> Iterator[Problem]:
    """The problem that *build* has, whatever code of an operator's own it runs."""
    try:
        build()
    except errors.ConfigurationError as error:
        yield problem_of(kind, error)
    except Exception as error:  # noqa: BLE001 - an operator's own code may raise anything
        is_own = isinstance(error, errors.NovaException)
        reason = str(error) if is_own else f"{type(error).__name__}: {error}"
        reason = reason.removeprefix("Invalid request: ").removeprefix(f"{option}: ")
        yield Problem(kind, option, reason, error=error)


Check = Callable[[cfg.ConfigOpts], Iterator[Problem]]
Build = Callable[[cfg.ConfigOpts, Databases], Any]


def _trying(kind: Kind, option: str, build: Callable[[cfg.ConfigOpts], Any]) -> Check:
    return lambda conf: attempt(kind, option, lambda: build(conf))


def databases_and_claims(
    conf: cfg.ConfigOpts, databases: Databases, driver: Any = None
) -> Iterator[Problem]:
    """Problems of the configured databases and what is in them; *driver* is the class, if known."""
    found = list(_findings(databases))
    yield from found
    if not found:
        yield from attempt(
            Kind.DATABASE, "[explain]", lambda: store.check_ready(conf, databases.main)
        )
        yield from _claims(conf, databases, driver)


def _findings(databases: Databases) -> Iterator[Problem]:
    for finding in inspection.configured(databases):
        failure = finding.failure
        if failure is not None:
            reason = str(failure.kwargs.get("reason") or failure)
            yield Problem(Kind.DATABASE, finding.place, reason, error=failure)
        elif finding.may_write_service is False:
            reason = (
                f"{finding.url}: the row of this service cannot be written with this account; "
                "give it the rights for that, or set [database] read_only = true"
            )
            yield Problem(Kind.DATABASE, finding.place, reason)
        elif finding.is_nova:
            LOG.info("%s", finding.line())


def clock(database: Database) -> Iterator[Problem]:
    """The question whether the clocks of this machine and of the database's server are right."""
    theirs = database.server_time()
    ahead = 0.0 if theirs is None else time.time() - theirs
    if abs(ahead) > CLOCK_SECONDS:
        reason = (
            f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} "
            "the database server's, so services look down to one another; set both by NTP"
        )
        yield Problem(Kind.QUESTION, database.option, reason)


def _claims(conf: cfg.ConfigOpts, databases: Databases, driver: Any) -> Iterator[Problem]:
    try:
        loading.settle(conf, databases.main, driver)
        loading.check_ready(conf, databases.main)
    except (errors.NovaException, *FAILURES) as error:
        yield problem_of(Kind.DATABASE, databases.main.unusable(error))


def _buses(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    yield from attempt(
        Kind.OPTION, transport.OPTION, lambda: transport.get_transport(conf).cleanup()
    )
    if "oslo_messaging_rabbit" in conf:
        tls = functools.partial(message_broker.tls, conf.oslo_messaging_rabbit)
        yield from attempt(Kind.OPTION, transport.OPTION, tls)
    if _BARE_IPV6.search(conf.transport_url or ""):
        reason = "an IPv6 address needs brackets, as in rabbit://user:password@[::1]:5672/"
        yield Problem(Kind.OPTION, transport.OPTION, reason)
    if conf.oslo_messaging_notifications.transport_url:
        yield from attempt(
            Kind.OPTION,
            transport.NOTIFICATION_OPTION,
            lambda: transport.get_notification_transport(conf).cleanup(),
        )


def _notification_drivers(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    known = sorted(plugins.entry_point_names(NOTIFICATION_DRIVERS))
    for name in conf.oslo_messaging_notifications.driver:
        if name not in known:
            reason = f"{name!r} is none of {', '.join(known)}"
            yield Problem(Kind.PLUGIN, "[oslo_messaging_notifications] driver", reason)


def _logging(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    path = conf.log_config_append
    if path:
        parse: Callable[[str], Any] = configparser.RawConfigParser().read_string
        yield from _unreadable("[DEFAULT] log_config_append", path, parse, "logging file")
        return
    folder = conf.log_dir or (conf.log_file and os.path.dirname(os.path.abspath(conf.log_file)))
    if folder and not os.access(folder, os.W_OK | os.X_OK):
        option = "[DEFAULT] log_dir" if conf.log_dir else "[DEFAULT] log_file"
        yield Problem(Kind.SURROUNDINGS, option, f"{folder} {_NOT_WRITABLE}")


def _state_path(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    """Without a database of its own the service keeps one there."""
    if not conf.database.connection:
        path = pathlib.Path(conf.state_path).absolute()
        there = next(each for each in (path, *path.parents) if each.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                return
        except OSError:
            reason = f"{path}: {there} {_NOT_WRITABLE}, and [database] connection is not set"
            yield Problem(Kind.SURROUNDINGS, "[DEFAULT] state_path", reason)


def _recording(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    folder = conf.recording.directory
    if conf.recording.enabled and not os.access(folder, os.W_OK | os.X_OK):
        reason = f"{folder} {_NOT_WRITABLE}; make it, and give it to the service's account"
        yield Problem(Kind.SURROUNDINGS, "[recording] directory", reason)


def _tempdir(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    if not conf.tempdir:
        return
    try:
        with tempfile.TemporaryFile(dir=conf.tempdir):
            return
    except OSError as error:
        reason = f"Temporary directory is invalid: {error}"
        yield Problem(Kind.SURROUNDINGS, "[DEFAULT] tempdir", reason)


def _json_options(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    path = conf.scheduler_json_config_location
    if path:
        yield from _unreadable("[DEFAULT] scheduler_json_config_location", path, json.loads, "JSON")


def _unreadable(
    option: str, path: str, parse: Callable[[str], Any], kind: str
) -> Iterator[Problem]:
    try:
        parse(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        yield Problem(Kind.SURROUNDINGS, option, f"{path}: {error.strerror}")
    except (ValueError, RecursionError, configparser.Error) as error:
        yield Problem(Kind.SURROUNDINGS, option, f"{path} is no {kind}: {error}")


def _endpoint(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    """Check that the address is of this machine; a running daemon may hold the port."""
    if conf.metrics_endpoint.enabled:
        option = "[metrics_endpoint] host"
        host = conf.metrics_endpoint.host
        yield from attempt(Kind.SURROUNDINGS, option, lambda: server.bind(host, 0, option).close())


def broker(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    try:
        for connection, failure in message_broker.connect_all(conf, BROKER_SECONDS):
            if failure is not None:
                reason = f"{message_broker.name_of(connection)}: {failure}"
                yield Problem(Kind.BROKER, transport.OPTION, reason)
    except errors.ConfigurationError as error:
        yield problem_of(Kind.BROKER, error)


AT_START: Final[tuple[Check, ...]] = (
    _trying(Kind.OPTION, "[pci] alias", lambda conf: parse_aliases(conf.pci.alias)),
    _tempdir,
    _state_path,
    _recording,
    _buses,
    *(
        _trying(Kind.OPTION, f"[upgrade_levels] {i}", functools.partial(version_cap, interface=i))
        for i in ("scheduler", "baseapi")
    ),
    _trying(Kind.OPTION, transport.TRACING_OPTION, transport.load_span_exporter),
)
"""Checked at the start of every program; the start itself finds what the other checks find."""
CHECKS: Final[tuple[Check, ...]] = (
    *AT_START,
    _trying(Kind.PLUGIN, "[scheduler] driver", driver_class),
    _trying(Kind.PLUGIN, "[scheduler] host_manager", host_manager_class),
    _trying(Kind.PLUGIN, "[filter_scheduler] enabled_filters", load_filters),
    _trying(Kind.PLUGIN, "[filter_scheduler] weight_classes", load_weighers),
    _notification_drivers,
    _logging,
    _json_options,
    _endpoint,
)


def problems(
    source: startup.Source,
    build: Build | None = None,
    *,
    with_broker: bool = False,
    into: cfg.ConfigOpts | None = None,
) -> list[Problem]:
    """Everything that is wrong with what *source* names, in the order of the checks.

    What a bad value stands for is left at its default for the checks that come after it.  *build*
    makes all parts together, as at a start, where each by itself is right; without it no database
    is tried.  *into* is filled with what is read: plug-ins may read the process-wide options when
    they are imported.
    """
    paths = startup.named_files(source)
    try:
        conf = startup.fill(source, into)
        transport.complete(conf)
    except errors.ConfigurationError as error:
        kind = Kind.FILE if isinstance(error.__cause__, _UNREADABLE) else Kind.OPTION
        return [_placed(problem_of(kind, error), paths)]
    found = [problem_of(Kind.OPTION, error) for error in check.problems(conf)]
    found += [Problem(Kind.OPTION, *each) for each in names.unknown(conf, paths)]
    plugins.prepare(conf)
    questions = [Problem(Kind.QUESTION, *each) for each in check.questions(conf, paths)]
    questions += [Problem(Kind.QUESTION, *each) for each in check.replaced(conf) if not found]
    for each in CHECKS:
        found += each(conf)
    found += _databases(conf) if build else ()
    if with_broker:
        found += broker(conf)
    if build and not found:
        databases = Databases.from_conf(conf, for_command=True)
        found += attempt(Kind.PLUGIN, "[scheduler] driver", lambda: build(conf, databases))
        databases.dispose()
    return [_placed(each, paths) for each in dict.fromkeys((*found, *questions))]


def _databases(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    try:
        databases = Databases.from_conf(conf, for_command=True)
    except errors.ConfigurationError as error:
        yield problem_of(Kind.DATABASE, error)
        return
    try:
        if databases.main.is_embedded_default:  # it is made at the start, if it is not there
            migration.version(databases.main)
        else:
            found = list(databases_and_claims(conf, databases))
            yield from found or clock(databases.main)
    except FAILURES as error:
        yield problem_of(Kind.DATABASE, databases.main.unusable(error))
    finally:
        databases.dispose()


def _placed(problem: Problem, paths: list[str]) -> Problem:
    """*problem* with file and line, where an option is named that is set."""
    place, option = mistakes.located(problem.option, paths)
    return replace(problem, option=option, place=problem.place or place)
