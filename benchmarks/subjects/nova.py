"""Decisions by a real Nova: its HostManager with its filters and weighers, on tables it made."""

import contextlib
import datetime
import itertools
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import configuration, fleet, install, requests
from benchmarks.sample import Sample
from benchmarks.session import Session
from benchmarks.workload import Settings
from scheduler.db import tables
from scheduler.db.database import Database
from tests.nova import databases
from tests.nova.driver import NovaDriver
from tests.servers.venvs import NOVA

#: What ``database`` is called in settings where Nova made it.
TABLES = "nova"
POOL = 50
PARTS = ("states", "filters", "weighers")


def database(
    session: Session,
    plan: fleet.FleetPlan,
    advised: bool = False,
    now: datetime.datetime = fleet.NOW,
) -> databases.NovaDatabases:
    """Databases that Nova made, with the fleet in them; *advised* ones with our indexes, too."""

    def make(_ending: contextlib.ExitStack) -> databases.NovaDatabases:
        made = _filled(session, plan, now)
        if advised:
            program = Path(sys.executable).with_name("nova-scheduler-manage")
            command = [str(program), "--config-file", str(made.config), "db", "advise", "--apply"]
            subprocess.run(command, check=True, capture_output=True)
        return made

    return session.once(f"nova {plan} {advised} {now}", make)


def _filled(
    session: Session, plan: fleet.FleetPlan, now: datetime.datetime
) -> databases.NovaDatabases:
    """Nova's tables with the fleet as reported at *now*, all hosts mapped to the one cell."""
    python = NOVA.ensure()
    made = databases.create(session.mariadb, python, session.folder())
    cell, api = Database(made.cell_url), Database(made.api_url)
    try:
        with cell.write() as in_cell, api.write() as in_api:
            install.put(in_cell, in_api, plan, now)
            mapping = tables.cell_mappings
            query = mapping.select().where(mapping.c.name == "cell1")
            cell_id = in_api.execute(query.with_only_columns(mapping.c.id)).scalar_one()
            rows = [{"host": host, "cell_id": cell_id} for host in plan.names]
            for start in range(0, len(rows), install.ROWS_AT_ONCE):
                some = rows[start : start + install.ROWS_AT_ONCE]
                in_api.execute(tables.host_mappings.insert(), some)
    finally:
        cell.dispose()
        api.dispose()
    return made


class NovaDecisions:
    """The same requests, answered by Nova.

    ``reads: true`` includes what it does for every request: reading all hosts and building their
    states; otherwise the states are built once, and filters and weighers alone are measured.
    """

    def __init__(self, settings: Settings, session: Session) -> None:
        self._plan = fleet.FleetPlan(**settings["fleet"])
        self._reads = bool(settings["reads"])
        kind = requests.KINDS[settings.get("requests", "plain")]
        self._specs = [kind(number, self._plan).obj_to_primitive() for number in range(POOL)]
        made = database(session, self._plan, now=datetime.datetime.now(datetime.UTC))
        filters = configuration.chain(settings["filters"])
        key = f"nova process {self._plan} {filters} {settings.get('requests')}"
        configured = made.configured(session.folder(), _options(filters))
        self._process = session.once(key, lambda ending: self._start(ending, configured))
        self._numbers = itertools.count()

    def _start(self, ending: contextlib.ExitStack, made: databases.NovaDatabases) -> NovaDriver:
        process = NovaDriver(made.python, made.config, made.config.with_suffix(".log"))
        ending.callback(process.close)
        hosts = process.do("measuring.prepare", specs=self._specs)
        if hosts != self._plan.hosts:
            raise RuntimeError(f"Nova sees {hosts} hosts of {self._plan.hosts}")
        return process

    def warm_up(self) -> None:
        """Once."""
        self._decide()

    def round(self, seconds: float) -> Sample:
        """Decide again and again, at least once."""
        parts: list[dict[str, Any]] = []
        began = time.perf_counter()
        while not parts or time.perf_counter() - began < seconds:
            parts.append(self._decide())
        latencies = [sum(part[name] for name in PARTS) for part in parts]
        more = {f"{name}_ms": 1000 * sum(p[name] for p in parts) / len(parts) for name in PARTS}
        answers = [part["best"] for part in parts]
        return Sample(latencies, sum(latencies), len(latencies), answers, more)

    def _decide(self) -> dict[str, Any]:
        decided: dict[str, Any] = self._process.do(
            "measuring.decide", number=next(self._numbers), reads=self._reads
        )
        return decided

    def pids(self) -> Sequence[int]:
        """Nova's leaks are its own affair."""
        return ()

    def close(self) -> None:
        """The process ends with the session."""


def _options(filters: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What Nova's configuration says besides its databases."""
    own = "tests.nova.inside.quiet_hosts.QuietHostsFilter"
    return {
        "DEFAULT": {"service_down_time": 86400},
        "filter_scheduler": {
            "available_filters": ["nova.scheduler.filters.all_filters", own],
            "enabled_filters": ",".join(filters),
        },
    }
