"""``nova-conductor-stub``: global options, then ``serve`` or a command on servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from oslo_config import cfg
from oslo_log import log as logging

from conductor_stub.cli import app
from conductor_stub.service import ConductorWorker, check_manager
from scheduler import concurrency, errors, preflight
from scheduler.cli import program
from scheduler.conf import startup
from scheduler.readiness import Readiness
from scheduler.rpc import transport
from scheduler.supervision import Supervision
from scheduler.worker import launch

LOG = logging.getLogger(__name__)

SERVE: Final = "serve"


def main(argv: Sequence[str]) -> int:
    """Do what the command line asks for; returns the status to exit with."""
    transport.set_defaults()
    option = program.command_option(app.PROG, app.WORDS)
    # The daemon's log lines are wanted, those of commands are not; the first word tells.
    first_word = next((word for word in argv if word in app.WORDS), None)
    conf = startup.parse(argv, app.PROG, cli_opts=[option], quiet=first_word != SERVE)
    if conf.command.name == SERVE:
        return _serve(conf)
    return app.run(conf)


def _serve(conf: cfg.ConfigOpts) -> int:
    LOG.info("Requests run side by side by means of %s", concurrency.current())
    try:
        preflight.check_surroundings(conf, check_manager)
    except errors.NovaException as error:
        return preflight.refuse(conf, app.PROG, error)
    supervision = Supervision()
    conductor = ConductorWorker(conf, Readiness(), supervision)
    return launch(conf, conductor, supervision, conf.conductor.workers)
