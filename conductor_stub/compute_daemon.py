"""``nova-compute-stub``: one process that is many compute hosts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from oslo_config import cfg
from oslo_log import log as logging

from conductor_stub.compute import profile_file, profiles
from conductor_stub.compute.builds import BuildSettings
from conductor_stub.compute.service import ComputeService
from scheduler import concurrency, errors, preflight
from scheduler.conf import startup
from scheduler.readiness import Readiness
from scheduler.rpc import transport
from scheduler.supervision import Supervision
from scheduler.worker import launch

LOG = logging.getLogger(__name__)

PROGRAM: Final = "nova-compute-stub"
DESCRIPTION: Final = "One process that is many compute hosts: they claim, build and report."
CLI_OPTIONS: Final[tuple[cfg.Opt, ...]] = (
    cfg.IntOpt(
        "hosts",
        min=1,
        help="Number of compute hosts to be. Default: as many as the profile makes by itself.",
    ),
    cfg.StrOpt(
        "profile",
        default=str(profiles.DEFAULT_FILE),
        help="YAML file that says what the hosts look like.",
    ),
    cfg.StrOpt(
        "host-prefix",
        default="compute",
        help="Beginning of the hosts' names: <prefix>-01, <prefix>-02, and so on.",
    ),
    cfg.FloatOpt("build-seconds", default=1.0, min=0, help="Seconds that a build takes."),
    cfg.FloatOpt(
        "fail-rate", default=0.0, min=0, max=1, help="Part of the builds that fail, 0.0 to 1.0."
    ),
    cfg.FloatOpt(
        "abort-rate",
        default=0.0,
        min=0,
        max=1,
        help="Part of the builds that fail in a way that would fail on any host, so that no other "
        "one is tried.",
    ),
    cfg.IntOpt(
        "seed",
        help="Seed of the choice of the builds that fail, in the order in which they get that far.",
    ),
)


def main(argv: Sequence[str]) -> int:
    """Be compute hosts until told to stop; returns the status to exit with."""
    transport.set_defaults()
    conf = startup.parse(argv, PROGRAM, cli_opts=CLI_OPTIONS, description=DESCRIPTION)
    LOG.info("Requests run side by side by means of %s", concurrency.current())
    try:
        preflight.check_surroundings(conf)
        profile = profile_file.load(conf.profile)
        plans = profile.plan(conf.hosts or profile.natural_size, conf.host_prefix)
        profiles.merged_aggregates(plans)
    except errors.NovaException as error:
        return preflight.refuse(conf, PROGRAM, error)
    return _run(conf, plans)


def _run(conf: cfg.ConfigOpts, plans: list[profiles.HostPlan]) -> int:
    settings = BuildSettings(
        build_seconds=conf.build_seconds,
        fail_rate=conf.fail_rate,
        abort_rate=conf.abort_rate,
        max_concurrent_builds=conf.max_concurrent_builds,
    )
    supervision = Supervision()
    luck = random.Random(conf.seed)
    service = ComputeService(conf, plans, settings, luck, Readiness(), supervision)
    return launch(conf, service, supervision, workers=1)
