"""Everything that is wrong with a configuration, without running the scheduler on it.

All problems are found, not only the first: what a bad value stands for is left at its default for
the checks that come after it.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator

from oslo_config import cfg

from scheduler import conf as project_options
from scheduler import errors
from scheduler.conf import check, names, startup
from scheduler.daemon import checks
from scheduler.daemon.checks import Kind, Problem, attempt, problem_of
from scheduler.daemon.service import build_manager
from scheduler.db.databases import Databases
from scheduler.rpc import transport


def problems(source: startup.Source, *, with_broker: bool = False) -> list[Problem]:
    """Everything that is wrong with what *source* names, in the order of the checks."""
    found = list(_files(source))
    if found:
        return found
    try:
        conf = startup.fill(source)
        transport.complete(conf)
    except errors.ConfigurationError as error:
        return [problem_of(Kind.OPTION, error)]
    paths = startup.used_files(conf)
    found = [*_values(conf), *_names(conf, paths)]
    for each in checks.CHECKS:
        found += each(conf)
    found += _databases(conf)
    if with_broker:
        found += checks.broker(conf)
    if not found:
        found += _whole(conf)
    places = _Places(conf, paths)
    return [places.put(each) for each in dict.fromkeys(found)]


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
        yield problem_of(Kind.OPTION, error)


def _names(conf: cfg.ConfigOpts, paths: list[str]) -> Iterator[Problem]:
    for each in names.unknown(conf, project_options.group_names(), paths):
        setting = each.setting
        yield Problem(Kind.OPTION, f"[{setting.group}] {setting.name}", each.reason, setting.place)


def _databases(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    for group in ("database", "api_database"):
        conf.set_default("max_retries", 1, group=group)
        conf.set_default("retry_interval", 1, group=group)
    try:
        databases = Databases.from_conf(conf)
    except errors.ConfigurationError as error:
        yield problem_of(Kind.DATABASE, error)
        return
    try:
        if not databases.main.is_embedded_default:  # that one is made at the start
            yield from checks.databases_and_claims(conf, databases)
    finally:
        databases.dispose()


def _whole(conf: cfg.ConfigOpts) -> Iterator[Problem]:
    """All parts together, as at a start, where each by itself is right."""
    databases = Databases.from_conf(conf)
    try:
        yield from attempt(
            Kind.PLUGIN, "[scheduler] driver", lambda: build_manager(conf, databases)
        )
    finally:
        databases.dispose()


class _Places:
    """Where each option is set."""

    def __init__(self, conf: cfg.ConfigOpts, paths: list[str]) -> None:
        self._of: dict[str, str] = {}
        spelt = {(each.group, each.name): each.place for each in names.settings(paths)}
        for group, option in names.options(conf):
            for spelling in reversed(names.spellings(group, option)):
                if spelling in spelt:
                    self._of[f"[{group}] {option.dest}"] = spelt[spelling]

    def put(self, problem: Problem) -> Problem:
        """*problem* with its place, if it is known."""
        option = problem.option.partition(" (")[0]
        place = problem.place or self._of.get(option, "")
        return dataclasses.replace(problem, option=option, place=place)
