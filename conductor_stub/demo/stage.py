"""The parts of the demo, started in one process: scheduler, conductor and eight compute hosts."""

from __future__ import annotations

import contextlib
import pathlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from oslo_config import cfg

from conductor_stub.compute import profile_file, profiles
from conductor_stub.compute.builds import BuildSettings
from conductor_stub.compute.service import ComputeService
from conductor_stub.service import ConductorWorker
from scheduler.db import migration
from scheduler.db.database import Database
from scheduler.observation import Observation
from scheduler.readiness import Readiness
from scheduler.service import Service
from scheduler.supervision import Supervision

CONFIGURATION = """\
[DEFAULT]
transport_url = fake://
state_path = {folder}
host = demo
log_file = {folder}/demo.log
report_interval = 2
[filter_scheduler]
enabled_filters = RetryFilter,AvailabilityZoneFilter,RamFilter,DiskFilter,ComputeFilter,\
ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,\
ServerGroupAffinityFilter,SameHostFilter
"""
BUILD_SECONDS = 0.4


class Misfortune(random.Random):
    """Makes exactly one build fail: the next one after :meth:`strike`."""

    def __init__(self) -> None:
        super().__init__()
        self._is_due = False

    def strike(self) -> None:
        """Let the next build fail."""
        self._is_due = True

    def random(self) -> float:
        """0.0 for the build that is to fail, else a number that no fail rate reaches."""
        is_due, self._is_due = self._is_due, False
        return 0.0 if is_due else 1.0


@dataclass(frozen=True)
class Stage:
    """Everything that runs, and what the demo looks at."""

    conf: cfg.ConfigOpts
    database: Database
    scheduler: Service
    misfortune: Misfortune


def write_configuration(folder: pathlib.Path) -> pathlib.Path:
    """The demo's nova.conf, in *folder*."""
    path = folder / "nova.conf"
    path.write_text(CONFIGURATION.format(folder=folder), encoding="utf-8")
    return path


@contextlib.contextmanager
def started(conf: cfg.ConfigOpts) -> Iterator[Stage]:
    """Start all parts on *conf*; they are stopped at the end."""
    with contextlib.ExitStack() as ending:
        database = Database.from_conf(conf)
        ending.callback(database.dispose)
        migration.sync(database)
        misfortune = Misfortune()
        profile = profile_file.load(str(profiles.DEFAULT_FILE))
        plans = profile.plan(profile.natural_size, "compute")
        settings = BuildSettings(
            build_seconds=BUILD_SECONDS,
            fail_rate=0.5,
            max_concurrent_builds=conf.max_concurrent_builds,
        )
        scheduler = Service(conf, Readiness({}), Supervision(), Observation())
        workers = (
            ComputeService(conf, plans, settings, misfortune, Readiness({}), Supervision()),
            scheduler,
            ConductorWorker(conf, Readiness({}), Supervision()),
        )
        for worker in workers:
            worker.start()
            ending.callback(worker.stop)
        yield Stage(conf, database, scheduler, misfortune)
