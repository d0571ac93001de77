"""``nova-scheduler``: parse, check, build, run (reference page service, sections 1 and 3)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import service as oslo_service

from scheduler import concurrency, errors, exit_codes, preflight
from scheduler.conf import startup
from scheduler.readiness import Readiness
from scheduler.rpc import transport
from scheduler.service import BINARY, Service
from scheduler.supervision import Supervision

LOG = logging.getLogger(__name__)


def main(argv: Sequence[str]) -> int:
    """Run the scheduler until it is told to stop; returns the status to exit with."""
    transport.set_defaults()
    conf = startup.parse(argv, BINARY)
    LOG.info("Requests run side by side by means of %s", concurrency.current())
    try:
        preflight.check(conf)
    except errors.NovaException as error:
        return _refuse(conf, error)
    return _run(conf)


def _refuse(conf: cfg.ConfigOpts, error: errors.NovaException) -> int:
    """Say in one line why there is no start, where the operator looks."""
    message = " ".join(str(error).split())
    if conf.log_file or conf.log_dir:
        LOG.critical("%s", message)
    sys.stderr.write(f"{BINARY}: error: {message}\n")
    return exit_codes.CONFIGURATION


def _run(conf: cfg.ConfigOpts) -> int:
    supervision = Supervision()
    service = Service(conf, Readiness(), supervision)
    workers = conf.scheduler.workers or os.cpu_count() or 1
    launcher = oslo_service.launch(conf, service, workers=workers, restart_method="mutate")
    try:
        status = launcher.wait()
    except SystemExit as ending:  # how the threading launcher of several workers returns
        status = ending.code
    if supervision.has_failed:
        return exit_codes.FAILURE
    return int(status or exit_codes.OK)
