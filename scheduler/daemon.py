"""``nova-scheduler``: parse, check, build, run (reference page service, sections 1 and 3)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import concurrency, errors, nova_compat, preflight
from scheduler.claims import backend
from scheduler.conf import startup
from scheduler.observation import Observation
from scheduler.readiness import Readiness
from scheduler.rpc import transport
from scheduler.service import BINARY, Service
from scheduler.supervision import Supervision
from scheduler.worker import launch

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
        preflight.check(conf)
        observation = Observation.from_conf(conf, BINARY)
    except errors.NovaException as error:
        return preflight.refuse(conf, BINARY, error)
    supervision = Supervision()
    observation.reports.pass_on(lambda: supervision.board)
    service = Service(conf, Readiness(), supervision, observation)
    service.reload_from(startup.Source(argv, BINARY))
    try:
        return launch(conf, service, supervision, number_of_workers(conf))
    finally:
        observation.close()


def number_of_workers(conf: cfg.ConfigOpts) -> int:
    """How many processes serve; one per CPU unless told otherwise, where that is safe."""
    books = conf.scheduler.claims not in (None, backend.NONE)
    wanted = conf.scheduler.workers
    if wanted is None:
        wanted = 0 if books and not transport.is_in_process(conf) else 1
    count = wanted or os.cpu_count() or 1
    if count > 1 and not books:
        LOG.warning(
            "%d workers and [scheduler] claims = none: two of them may promise the same host to "
            "two servers; the compute host refuses one of those then.",
            count,
        )
    return count
