"""The schedulers, and who kills them."""

import contextlib
import random
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from tests.race import journal
from tests.race.plan import Plan
from tests.waiting import wait_until
from tests.world.deployment import Deployment, Settings
from tests.world.process import Daemon

START_SECONDS = 300


class Schedulers:
    """Daemons that serve until :meth:`close`; between :meth:`begin` and :meth:`spare` some die."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        transport_url: str,
        database_url: str,
        settings: Settings | None = None,
    ) -> None:
        self._plan = plan
        self._rng = random.Random(plan.seed + 2)
        self.deployment = Deployment(
            folder, transport_url, database_url, plan.driver, plan.backend, _settings(plan)
        )
        self.recording = folder / "recording"
        self.recording.mkdir()
        recording = {"enabled": True, "directory": self.recording}
        self.deployment.configure({"recording": recording, **(settings or {})})
        self.counts: Counter[str] = Counter()
        self._daemons: list[Daemon] = [
            self.deployment.start_scheduler() for _number in range(plan.daemons)
        ]
        for each in self._daemons:
            each.wait_ready(START_SECONDS)
        self._spared = threading.Event()
        self._url = database_url
        self._killer = threading.Thread(target=self._kill, daemon=True)
        self.breaker = threading.Thread(target=self._break, daemon=True)

    def begin(self) -> None:
        """From now on schedulers are killed, or stopped and robbed of their claims."""
        if self._plan.kill_seconds:
            self._killer.start()
        if self._plan.break_seconds:
            self.breaker.start()

    def spare(self) -> None:
        """No more; those that are there at the end have started."""
        self._spared.set()
        for each in (self._killer, self.breaker):
            if each.is_alive():
                each.join()

    def close(self) -> None:
        self.spare()
        self.deployment.close()

    def tracebacks(self) -> list[str]:
        found = []
        for daemon in self.deployment.daemons:
            lines = daemon.log.splitlines()
            for number, line in enumerate(lines):
                if "Traceback (most recent" in line:
                    found.append(lines[min(number + 1, len(lines) - 1)])
        return found

    def _kill(self) -> None:
        every = self._plan.daemon_every
        while True:
            daemon = self._rng.choice(self._daemons)
            if every and self.counts["kills"] % every == every - 1:
                self._replace(daemon)
                self.counts["daemons killed"] += 1
            elif self._plan.workers == 1:  # then the daemon is its only worker
                self._replace(daemon)
            else:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if workers := psutil.Process(daemon.pid).children():
                        self._rng.choice(workers).send_signal(signal.SIGKILL)
            self.counts["kills"] += 1
            if self._spared.wait(self._plan.kill_seconds):
                return

    def _break(self) -> None:
        def wait() -> None:
            self._spared.wait(self._plan.break_seconds)

        def stop() -> None:
            daemon = self._rng.choice(self._daemons)
            worker = self._rng.choice(psutil.Process(daemon.pid).children())
            for do in (wait, worker.suspend, wait, worker.resume, wait):
                do()
            self.counts["workers stopped"] += 1

        journal.go_back(self._url, stop)
        noticed = "not those that were read before"
        wait_until(lambda: any(noticed in each.log for each in self._daemons))
        self.counts["times the claims went back"] += 1

    def _replace(self, daemon: Daemon) -> None:
        daemon.kill()
        self._daemons.remove(daemon)
        self._daemons.append(self.deployment.start_scheduler())


def _settings(plan: Plan) -> dict[str, dict[str, Any]]:
    return {
        "DEFAULT": {
            "debug": False,
            "service_down_time": 86400,  # nothing sends heartbeats for the hosts
            "periodic_fuzzy_delay": 0,
        },
        "scheduler": {
            "claims": plan.claims,
            "workers": plan.workers,
            "periodic_task_interval": 1,
            "max_attempts": 3,
        },
    }
