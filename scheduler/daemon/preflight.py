"""Checks before anything is forked, or each worker would fail anew (page service, 12.4)."""

import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import broker, errors, exit_codes
from scheduler.conf import mistakes, startup
from scheduler.daemon import checks
from scheduler.db import inspection, migration
from scheduler.db.databases import Databases
from scheduler.rpc import transport
from scheduler.rpc.client import worker_name, worker_topic

LOG = logging.getLogger(__name__)

# Where oslo.config looks.
SEARCHED_FOLDERS: Final = ("~/.nova", "~", "/etc/nova", "/etc")


def check(
    conf: cfg.ConfigOpts, build: Callable[[cfg.ConfigOpts, Databases], Any] | None = None
) -> None:
    """Raise the first problem's error; the database must answer, the broker need not yet."""
    for each in checks.AT_START:
        _raise_first(each(conf))
    tempfile.tempdir = conf.tempdir or tempfile.tempdir
    _warn_of_in_process_bus(conf)
    databases, paths = Databases.from_conf(conf), startup.used_files(conf)
    try:
        built = None if build is None else build(conf, databases)
        _make_embedded(databases)
        driver = getattr(built, "driver", None)
        deciding = None if driver is None else type(driver)
        _raise_first(checks.databases_and_claims(conf, databases, deciding))
        for question in checks.clock(databases.main):
            LOG.warning("%s", mistakes.line(f"{question.option}: {question.reason}", paths))
        _log_cells(databases)
    finally:
        databases.dispose()


def _raise_first(problems: Iterable[checks.Problem]) -> None:
    for each in problems:
        raise each.error or errors.ConfigurationError(option=each.option, reason=each.reason)


def refuse(conf: cfg.ConfigOpts, prog: str, error: errors.NovaException) -> int:
    """Say in one line why there is no start, where the operator looks; returns the exit status."""
    message = mistakes.line(error, startup.used_files(conf))
    if conf.log_file or conf.log_dir:
        LOG.critical("%s", message)
    sys.stderr.write(f"{prog}: error: {message}\n")
    return exit_codes.CONFIGURATION


def warn_of_namesake(conf: cfg.ConfigOpts) -> None:
    """Log one line if a worker of another daemon answers to the name of this one's first.

    No more: a broker may not know yet that the machine is gone which this one takes over from.
    """
    name = f"{worker_topic(conf)}.{worker_name(conf.host, 1)}"
    try:
        others = broker.consumers(conf, name)
    except errors.ConfigurationError:  # the bus is no RabbitMQ
        return
    if others:
        reason = (
            f"another daemon serves as {conf.host!r} (queue {name} has a consumer), so commands "
            "and records cannot tell the two apart; give each daemon a name of its own"
        )
        text = mistakes.line(f"[DEFAULT] host: {reason}", startup.used_files(conf))
        LOG.warning("%s", text)


def _make_embedded(databases: Databases) -> None:
    """Make the tables of the embedded database; those of any other are the operator's to make."""
    main = databases.main
    with main.naming_itself():
        if main.is_embedded_default and migration.version(main) != migration.head():
            LOG.info("Creating or upgrading the tables of the embedded %s", main.masked_url)
            migration.sync(main)


def _log_cells(databases: Databases) -> None:
    if databases.lacks_api:
        LOG.warning(
            "[api_database] connection is not set: the cells, aggregates and server groups of "
            "this Nova are not read."
        )
    for finding in inspection.cells(databases):
        if finding.failure is None:
            LOG.info("%s", finding.line())
        else:
            LOG.warning("%s; its hosts are left out until it answers", finding.line())


def _warn_of_in_process_bus(conf: cfg.ConfigOpts) -> None:
    if startup.is_embedded(conf):
        LOG.warning(
            "No configuration: neither --config-file nor --config-dir is given, and there is no "
            "%s.conf or %s.conf in %s. Running on the embedded defaults.",
            startup.PROJECT,
            conf.prog,
            ", ".join(SEARCHED_FOLDERS),
        )
    if transport.is_in_process(conf):
        LOG.warning(
            "The message bus is the one inside this process: no other process can reach this "
            "service. Set [DEFAULT] transport_url to change that."
        )
