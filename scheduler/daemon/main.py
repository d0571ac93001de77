"""``nova-scheduler``: parse, check, build, run (reference page service, sections 1 and 3)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import concurrency, errors, nova_compat
from scheduler.claims import loading
from scheduler.conf import startup
from scheduler.daemon import preflight
from scheduler.daemon.monitoring import Monitoring
from scheduler.daemon.service import BINARY, Service, build_manager
from scheduler.daemon.watchdog import Readiness
from scheduler.daemon.worker import launch
from scheduler.daemon.worker_table import WorkerTable
from scheduler.rpc import transport

LOG = logging.getLogger(__name__)

DESCRIPTION = "Answers select_destinations on the message bus: which host gets each new server."


def main(argv: Sequence[str]) -> int:
    """Run the scheduler until it is told to stop; returns the status to exit with."""
    transport.set_defaults()
    conf = startup.parse(argv, BINARY, description=DESCRIPTION)
    LOG.info("Requests run side by side by means of %s", concurrency.current())
    if conf.scheduler.nova_compat_imports:
        nova_compat.install(conf)
    try:
        preflight.check(conf, build_manager)
        monitoring = Monitoring.from_conf(conf, BINARY)
    except errors.NovaException as error:
        return preflight.refuse(conf, BINARY, error)
    table = WorkerTable(number_of_workers(conf))
    monitoring.reports.pass_on(table)
    service = Service(conf, Readiness(), table, monitoring)
    service.reload_from(startup.Source(argv, BINARY))
    try:
        return launch(conf, service)
    finally:
        monitoring.close()


def number_of_workers(conf: cfg.ConfigOpts) -> int:
    """Number of worker processes; one per CPU unless told otherwise, where that is safe."""
    claims = conf.scheduler.claims not in (None, loading.NONE)
    wanted = conf.scheduler.workers
    if wanted is None:
        wanted = 0 if claims and not transport.is_in_process(conf) else 1
    count = wanted or os.cpu_count() or 1
    if count > 1 and not claims:
        LOG.warning(
            "%d workers and [scheduler] claims = none: two of them may promise the same host to "
            "two servers; the compute host refuses one of those then.",
            count,
        )
    return count
