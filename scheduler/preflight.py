"""What can be found wrong before anything is started or forked.

Afterwards it would be found in every worker, again and again (reference page service, section
12, number 4).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, exit_codes
from scheduler.claims import backend
from scheduler.conf import startup
from scheduler.db import inspection, migration
from scheduler.db.database import FAILURES
from scheduler.db.databases import Databases
from scheduler.explain import store
from scheduler.rpc import transport, versions
from scheduler.rpc.transport import get_notification_transport, get_transport
from scheduler.service import build_manager
from scheduler.tracing import loading as tracing

LOG = logging.getLogger(__name__)

# Where oslo.config looks.
SEARCHED_FOLDERS: Final = ("~/.nova", "~", "/etc/nova", "/etc")


def check(conf: cfg.ConfigOpts) -> None:
    """Raise an error of this project, one line naming the cause, if the scheduler cannot start."""
    check_surroundings(conf, build_manager)


def check_surroundings(
    conf: cfg.ConfigOpts, build: Callable[[cfg.ConfigOpts, Databases], Any] | None = None
) -> None:
    """Raise an error of this project if bus or database, or what *build* makes, cannot be used.

    Nothing that was opened stays open.  The database must answer; the broker need not yet.
    """
    check_temporary_directory(conf)
    _check_buses(conf)
    versions.cap_from(conf.upgrade_levels.scheduler)
    versions.base_cap_from(conf.upgrade_levels.baseapi)
    _warn_of_in_process_bus(conf)
    tracing.load(conf, str(conf.prog))
    databases = Databases.from_conf(conf)
    try:
        built = None if build is None else build(conf, databases)
        _check_databases(databases)
        store.check_ready(conf, databases.main)
        backend.settle(conf, databases.main, getattr(built, "driver", None))
        backend.of_conf(conf, databases.main).check_ready()
    finally:
        databases.dispose()


def check_temporary_directory(conf: cfg.ConfigOpts) -> None:
    """Have temporary files made where ``tempdir`` says; ConfigurationError if that cannot be."""
    if not conf.tempdir:
        return
    try:
        with tempfile.TemporaryFile(dir=conf.tempdir):
            tempfile.tempdir = conf.tempdir
    except OSError as error:
        raise errors.ConfigurationError(
            option="[DEFAULT] tempdir", reason=f"Temporary directory is invalid: {error}"
        ) from error


def refuse(conf: cfg.ConfigOpts, prog: str, error: errors.NovaException) -> int:
    """Say in one line why there is no start, where the operator looks; returns the exit status."""
    message = " ".join(str(error).split())
    if conf.log_file or conf.log_dir:
        LOG.critical("%s", message)
    sys.stderr.write(f"{prog}: error: {message}\n")
    return exit_codes.CONFIGURATION


def _check_buses(conf: cfg.ConfigOpts) -> None:
    get_transport(conf).cleanup()
    get_notification_transport(conf).cleanup()


def _check_databases(databases: Databases) -> None:
    """Make the tables of the embedded database; those of any other are the operator's to make."""
    main = databases.main
    try:
        if main.is_embedded_default and migration.version(main) != migration.head():
            LOG.info("Creating or upgrading the tables of the embedded %s", main.masked_url)
            migration.sync(main)
    except FAILURES as error:
        raise main.unusable(error) from error
    for finding in inspection.configured(databases):
        _check_finding(finding)
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


def _check_finding(finding: inspection.Finding) -> None:
    if finding.failure is not None:
        raise finding.failure
    if finding.is_nova:
        LOG.info("%s", finding.line())
    if finding.may_write_service is False:
        reason = (
            f"{finding.url}: the row of this service cannot be written with this account; "
            "give it the rights for that, or set [database] read_only = true"
        )
        raise errors.ConfigurationError(option=finding.place, reason=reason)


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
