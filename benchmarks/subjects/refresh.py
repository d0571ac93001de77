"""Bringing the host table up to date with a database in which some rows have changed."""

import datetime
import random
import time
from collections.abc import Sequence

from oslo_config import cfg

from benchmarks import configuration, fleet, install, requests
from benchmarks.sample import Sample
from benchmarks.session import Session
from benchmarks.subjects import nova
from benchmarks.workload import Settings
from scheduler import drivers
from scheduler.db.cells import CellsReader
from scheduler.db.databases import Databases
from scheduler.drivers.loading import host_manager_class
from scheduler.rpc.context import get_admin_context

FULL = "full"
NEVER_SECONDS = 10**9
#: Longer than any look back, so that a read finds this step's changes and no others.
STEP = datetime.timedelta(seconds=600)


class Refreshes:
    """``HostManager.refresh()`` after ``changed`` rows (a share of the fleet) were reported.

    ``changed: full`` reads everything each time.  Neither the changes nor what other subjects have
    changed before is measured.  Time is the session's: it moves on by ten minutes with every step,
    by a second where nothing changes, so that a look back is as rare as it is in a worker.
    What a worker reads every second beside its requests is read between the steps.
    With ``decides: true`` it is the driver that refreshes, in the first decision after the changes,
    and processor time of this process that counts.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        self._plan = fleet.FleetPlan(**settings["fleet"])
        changed = settings["changed"]
        interval = 0 if changed == FULL else NEVER_SECONDS
        options = {
            "DEFAULT": {"service_down_time": NEVER_SECONDS},  # nothing sends heartbeats
            "scheduler": {"full_refresh_interval_seconds": interval},
        }
        conf = configuration.in_process({**settings, "options": options})
        conf.set_override("connection", _tables(settings, session, self._plan, conf), "database")
        self._databases = Databases.from_conf(conf)
        self._database = self._databases.main
        self._session = session
        reader = CellsReader(conf, self._databases)
        self._manager = host_manager_class(conf)(conf, reader, self._now)
        self._changed_rows = 0 if changed == FULL else round(changed * self._plan.hosts)
        self._rng = random.Random(1)
        self._driver = drivers.load(conf, self._manager) if settings.get("decides") else None

    def warm_up(self) -> None:
        """The first read is a full one; then one as in the rounds."""
        self._manager.refresh()
        self._refresh()

    def round(self, seconds: float) -> Sample:
        """Change and refresh until the refreshes alone have taken *seconds*."""
        self._catch_up()
        latencies: list[float] = []
        while not latencies or sum(latencies) < seconds / 2:
            latencies.append(self._refresh())
        answers = [self._manager.table.value(row, "free_ram_mb") for row in self._sample_rows()]
        more = {"changed_rows": float(self._changed_rows)}
        return Sample(latencies, sum(latencies), len(latencies), answers, more)

    def _catch_up(self) -> None:
        """Take what others have changed, see one newer change, and let both settle."""
        self._session.now += STEP
        self._report([1], 1024)
        self._manager.refresh()
        self._session.now += STEP
        self._manager.refresh()

    def _now(self) -> float:
        return self._session.now.timestamp()

    def _refresh(self) -> float:
        self._session.now += STEP if self._changed_rows else datetime.timedelta(seconds=1)
        self._manager.read_beside()
        nodes = self._rng.sample(range(1, self._plan.hosts + 1), self._changed_rows)
        free_ram_mb = self._rng.randrange(4096, 8192)
        self._report(nodes, free_ram_mb)
        elapsed = self._first_decision() if self._driver else self._read()
        self._check(nodes, free_ram_mb)
        return elapsed

    def _read(self) -> float:
        before = time.perf_counter()
        self._manager.refresh()
        return time.perf_counter() - before

    def _first_decision(self) -> float:
        spec, reservations = requests.plain(0, self._plan), self._manager.reservations
        before = time.process_time()
        self._driver.select_destinations(get_admin_context(), spec, [spec.instance_uuid])
        elapsed = time.process_time() - before
        for pick in reversed(list(reservations)):
            reservations.release(pick)
        return elapsed

    def _report(self, nodes: Sequence[int], free_ram_mb: int) -> None:
        if nodes:
            with self._database.write() as connection:
                install.report(connection, nodes, self._session.now, free_ram_mb)

    def _check(self, nodes: Sequence[int], free_ram_mb: int) -> None:
        """A refresh that was fast because it saw nothing does not count."""
        table = self._manager.table
        for node in nodes:
            host = self._plan.names[node - 1]
            found = table.value(table.rows[host, host], "free_ram_mb")
            if found != free_ram_mb:
                raise AssertionError(f"{host} has {free_ram_mb} MB free, the table says {found}")

    def _sample_rows(self) -> list[int]:
        return sorted(self._manager.table.rows.values())[:: max(1, self._plan.hosts // 10)]

    def pids(self) -> Sequence[int]:
        """None but this process."""
        return ()

    def close(self) -> None:
        """Close the connections."""
        self._databases.dispose()


def _tables(
    settings: Settings, session: Session, plan: fleet.FleetPlan, conf: cfg.ConfigOpts
) -> str:
    """The database of ``database``: ours on a server's engine, or ``nova``'s on MariaDB.

    ``advised: true``: with the indexes that ``nova-scheduler-manage db advise`` adds to Nova's.
    """
    if settings["database"] != nova.TABLES:
        return session.shared_database(settings["database"], plan)
    made = nova.database(session, plan, bool(settings.get("advised")))
    conf.set_override("connection", made.api_url, group="api_database")
    return made.cell_url
