"""Everything that is wrong with a configuration, without running the scheduler on it.

All problems are found, not only the first: what a bad value stands for is left at its default for
the checks that come after it.  Nothing is written, and no secret is told.
"""

from __future__ import annotations

import enum
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg
from stevedore import ExtensionManager

from scheduler import conf as project_options
from scheduler import errors, preflight
from scheduler.broker import expected
from scheduler.broker.connecting import Failure, connect
from scheduler.claims import backend
from scheduler.conf import check, files, logging_file, names, startup
from scheduler.db import inspection
from scheduler.db.database import FAILURES
from scheduler.db.databases import Databases
from scheduler.drivers.loading import driver_class, host_manager_class
from scheduler.filters.registry import load_chain
from scheduler.masking import masked
from scheduler.pci.aliases import parse_aliases
from scheduler.rpc import transport, versions
from scheduler.service import build_manager
from scheduler.web import server
from scheduler.weights.registry import load_weighers

BROKER_SECONDS: Final = 10
NOTIFICATION_DRIVERS: Final = "oslo.messaging.notify.drivers"


class Kind(enum.Enum):
    """What a problem is about."""

    FILE = "file"
    OPTION = "option"
    PLUGIN = "plug-in"
    DATABASE = "database"
    BROKER = "broker"
    SURROUNDINGS = "surroundings"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: *option* is ``[group] name`` or what else is to be looked at."""

    kind: Kind
    option: str
    reason: str
    #: File and line; empty where nothing is set.
    place: str = ""

    @property
    def line(self) -> str:
        """All of it in one line."""
        place = f"{self.place}: " if self.place else ""
        return masked(" ".join(f"{place}{self.option}: {self.reason}".split()))


Check = Callable[[cfg.ConfigOpts], Iterator[Problem]]


def problems(source: startup.Source, *, with_broker: bool = False) -> list[Problem]:
    """Everything that is wrong with what *source* names, in the order of the checks."""
    found = list(_files(source))
    if found:
        return found
    try:
        conf = startup.fill(source)
        transport.complete(conf)
    except errors.ConfigurationError as error:
        return [_problem(Kind.OPTION, error)]
    paths = startup.used_files(conf)
    found = [*_values(conf), *_names(conf, paths)]
    for each in (*CHECKS, _broker) if with_broker else CHECKS:
        found += each(conf)
    if not found:
        found += _whole(conf)
    places = _Places(conf, paths)
    return [places.put(each) for each in dict.fromkeys(found)]


def _problem(kind: Kind, error: Exception) -> Problem:
    """What *error* says, with the option it names."""
    kwargs = getattr(error, "kwargs", {})
    if isinstance(error, errors.ConfigurationError):
        return Problem(kind, str(kwargs["option"]), str(kwargs["reason"]))
    return Problem(kind, kind.value, str(error))


def _attempt(kind: Kind, option: str, build: Callable[[], Any]) -> Iterator[Problem]:
    """The problem that *build* has, whatever code of an operator's own it runs."""
    try:
        build()
    except errors.ConfigurationError as error:
        yield _problem(kind, error)
    except Exception as error:  # noqa: BLE001 - an operator's own code may raise anything
        named = str(error) if isinstance(error, errors.NovaException) else _typed(error)
        yield Problem(kind, option, named)


def _typed(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _files(source: startup.Source) -> Iterator[Problem]:
    for path in startup.named_files(source):
        file = pathlib.Path(path).expanduser()
        try:
            cfg.ConfigParser(str(file), {}).parse()
        except cfg.ParseError as error:
            yield Problem(Kind.FILE, path, str(error))
        except (OSError, UnicodeDecodeError) as error:
            yield Problem(Kind.FILE, path, getattr(error, "strerror", None) or str(error))


def _values(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    for error in check.problems(conf):
        yield _problem(Kind.OPTION, error)


def _names(conf: cfg.ConfigOpts, paths: list[str]) -> Iterator[Problem]:
    for each in names.unknown(conf, project_options.group_names(), paths):
        setting = each.setting
        yield Problem(Kind.OPTION, f"[{setting.group}] {setting.name}", each.told, setting.place)


def _caps(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    yield from _attempt(
        Kind.OPTION,
        "[upgrade_levels] scheduler",
        lambda: versions.cap_from(conf.upgrade_levels.scheduler),
    )
    yield from _attempt(
        Kind.OPTION,
        "[upgrade_levels] baseapi",
        lambda: versions.base_cap_from(conf.upgrade_levels.baseapi),
    )


def _aliases(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    yield from _attempt(Kind.OPTION, "[pci] alias", lambda: parse_aliases(conf.pci.alias))


def _plugins(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    yield from _attempt(Kind.PLUGIN, "[scheduler] driver", lambda: driver_class(conf))
    yield from _attempt(Kind.PLUGIN, "[scheduler] host_manager", lambda: host_manager_class(conf))
    group, usable = conf.filter_scheduler, []
    for path in group.available_filters:
        with _instead(conf, available_filters=[path], enabled_filters=[]):
            bad = list(
                _attempt(
                    Kind.PLUGIN, "[filter_scheduler] available_filters", lambda: load_chain(conf)
                )
            )
        yield from bad
        usable += [] if bad else [path]
    option = _filters_option(conf)
    for name in filter(None, group[option]):
        with _instead(conf, available_filters=usable, **{option: [name]}):
            yield from _attempt(
                Kind.PLUGIN, f"[filter_scheduler] {option}", lambda: load_chain(conf, option)
            )
    for path in filter(None, group.weight_classes):
        with _instead(conf, weight_classes=[path]):
            yield from _attempt(
                Kind.PLUGIN, "[filter_scheduler] weight_classes", lambda: load_weighers(conf)
            )


def _filters_option(conf: cfg.ConfigOpts) -> str:
    try:
        return str(host_manager_class(conf).option_of_filters(conf))
    except (errors.NovaException, AttributeError):
        return "enabled_filters"


class _instead:  # noqa: N801 - reads like the function it is
    """Within it, options of ``[filter_scheduler]`` have other values."""

    def __init__(self, conf: cfg.ConfigOpts, **values: list[str]) -> None:
        self._conf = conf
        self._values = values

    def __enter__(self) -> None:
        for name, value in self._values.items():
            self._conf.set_override(name, value, group="filter_scheduler")

    def __exit__(self, *_error: object) -> None:
        for name in self._values:
            self._conf.clear_override(name, group="filter_scheduler")


def _databases(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    """The databases, and what is kept in them."""
    for group in ("database", "api_database"):
        conf.set_default("max_retries", 1, group=group)
        conf.set_default("retry_interval", 1, group=group)
    try:
        databases = Databases.from_conf(conf)
    except errors.ConfigurationError as error:
        yield _problem(Kind.DATABASE, error)
        return
    try:
        usable = True
        if not databases.main.is_embedded_default:  # that one is made at the start
            for finding in inspection.configured(databases):
                if finding.failure is not None:
                    usable = False
                    yield Problem(Kind.DATABASE, finding.place, _reason(finding.failure))
                elif finding.may_write_service is False:
                    yield Problem(
                        Kind.DATABASE,
                        finding.place,
                        f"{finding.url}: this account may not write the row of this service; "
                        "give it the right, or set [database] read_only = true",
                    )
            if usable:
                yield from _claims(conf, databases)
    finally:
        databases.dispose()


def _reason(failure: errors.NovaException) -> str:
    return str(failure.kwargs.get("reason") or failure)


def _claims(conf: cfg.ConfigOpts, databases: Databases) -> Iterator[Problem]:
    try:
        backend.settle(conf, databases.main)
        claims = backend.of_conf(conf, databases.main)
        claims.check_ready()
    except errors.NovaException as error:
        yield _problem(Kind.DATABASE, error)
    except FAILURES as error:
        yield _problem(Kind.DATABASE, databases.main.unusable(error))


def _whole(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    """All parts together, as at a start, where each by itself is right."""
    databases = Databases.from_conf(conf)
    try:
        yield from _attempt(
            Kind.PLUGIN, "[scheduler] driver", lambda: build_manager(conf, databases)
        )
    finally:
        databases.dispose()


def _notifications(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    option = "[oslo_messaging_notifications] driver"
    known = sorted(ExtensionManager(NOTIFICATION_DRIVERS).entry_points_names())
    for name in conf.oslo_messaging_notifications.driver:
        if name not in known:
            reason = f"{name!r} is none of {', '.join(known)}"
            yield Problem(Kind.PLUGIN, option, reason)
    if conf.oslo_messaging_notifications.transport_url:
        yield from _attempt(
            Kind.OPTION,
            transport.NOTIFICATION_OPTION,
            lambda: transport.get_notification_transport(conf).cleanup(),
        )
    yield from _attempt(
        Kind.OPTION, transport.OPTION, lambda: transport.get_transport(conf).cleanup()
    )


def _logging(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    if conf.log_config_append:
        for reason in logging_file.problems(conf.log_config_append):
            yield Problem(Kind.SURROUNDINGS, "[DEFAULT] log_config_append", reason)
        return
    folder = conf.log_dir or (conf.log_file and os.path.dirname(os.path.abspath(conf.log_file)))
    if folder and not os.access(folder, os.W_OK | os.X_OK):
        option = "[DEFAULT] log_dir" if conf.log_dir else "[DEFAULT] log_file"
        yield Problem(Kind.SURROUNDINGS, option, f"{folder} is no directory to write to")


def _tempdir(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    yield from _attempt(
        Kind.SURROUNDINGS,
        "[DEFAULT] tempdir",
        lambda: preflight.check_temporary_directory(conf),
    )


def _json_options(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    path, option = conf.scheduler_json_config_location, "[DEFAULT] scheduler_json_config_location"
    if not path:
        return
    try:
        json.loads(pathlib.Path(path).read_bytes())
    except OSError as error:
        yield Problem(Kind.SURROUNDINGS, option, f"{path}: {error.strerror}")
    except (ValueError, RecursionError) as error:
        yield Problem(Kind.SURROUNDINGS, option, f"{path} is no JSON: {error}")


def _endpoint(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    """Whether the address is one of this machine; the port may be that of a running daemon."""
    if conf.metrics_endpoint.enabled:
        option = "[metrics_endpoint] host"
        host = conf.metrics_endpoint.host
        yield from _attempt(Kind.SURROUNDINGS, option, lambda: server.bind(host, 0, option).close())


def _broker(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    try:
        nodes = expected.of_conf(conf).nodes
    except errors.ConfigurationError as error:
        yield _problem(Kind.BROKER, error)
        return
    for node in nodes:
        try:
            connect(node, BROKER_SECONDS).release()
        except Failure as failure:
            yield Problem(Kind.BROKER, transport.OPTION, f"{node.name}: {failure}")


CHECKS: Final[tuple[Check, ...]] = (
    _caps,
    _aliases,
    _plugins,
    _notifications,
    _databases,
    _logging,
    _tempdir,
    _json_options,
    _endpoint,
)


class _Places:
    """Where each option is set."""

    def __init__(self, conf: cfg.ConfigOpts, paths: list[str]) -> None:
        self._of: dict[str, str] = {}
        spelt = {(each.group, each.name): each.place for each in files.settings(paths)}
        for group, option in names.options(conf):
            for old in (*option.deprecated_opts, None):
                name = option.dest if old is None else (old.name or option.dest)
                section = group if old is None else (old.group or group)
                place = spelt.get((section, name.replace("-", "_")))
                if place:
                    self._of[f"[{group}] {option.dest}"] = place

    def put(self, problem: Problem) -> Problem:
        """*problem* with its place, if it is known."""
        option = problem.option.partition(" (")[0]
        place = problem.place or self._of.get(option, "")
        return Problem(problem.kind, option, problem.reason, place)
