"""The processes that answer on the bus: schedulers, and the server that answers a constant."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from benchmarks import configuration, constant_daemon
from benchmarks.workload import Settings
from tests.world.deployment import Deployment, render
from tests.world.process import Daemon, environment

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 300
STOP_SECONDS = 20


class Server(Protocol):
    """A running process."""

    pid: int

    def close(self) -> None:
        """End it."""


def scheduler(
    settings: Settings,
    folder: Path,
    transport_url: str,
    database_url: str,
    profile: Path | None = None,
) -> tuple[Deployment, Daemon]:
    """A scheduler that serves the bus; it writes where its time went to *profile* when it ends."""
    deployment = Deployment(
        folder,
        transport_url,
        database_url,
        backend=settings.get("backend", "eventlet"),
        settings=_options(settings, folder),
    )
    if profile is not None:
        deployment.run_by = (sys.executable, "-m", "cProfile", "-o", str(profile))
    daemon = deployment.start_scheduler()
    daemon.wait_ready(timeout_seconds=START_SECONDS)
    return deployment, daemon


def _options(settings: Settings, folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """What the configuration file says: lists as the options take them, no debugging lines."""
    groups = configuration.groups(settings)
    texts: dict[str, dict[str, Any]] = {
        group: {
            name: ",".join(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        for group, values in groups.items()
    }
    texts["recording"] = {"directory": folder, **texts.get("recording", {})}
    # Nothing sends heartbeats for the hosts.
    return {**texts, "DEFAULT": {"debug": False, "service_down_time": 86400, **texts["DEFAULT"]}}


class ConstantServer:
    """``benchmarks.constant_server`` as a process, serving when the constructor returns."""

    def __init__(self, settings: Settings, folder: Path, transport_url: str) -> None:
        config = folder / "constant.conf"
        options = {"transport_url": transport_url, "host": "constant"}
        config.write_text(render({"DEFAULT": options}), encoding="utf-8")
        self._log = (folder / "constant.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.constant_server", "--config-file", str(config)],
            cwd=ROOT,
            env=environment(settings.get("backend", "eventlet")),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != constant_daemon.READY:
            self.close()
            raise RuntimeError((folder / "constant.log").read_text(encoding="utf-8"))

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()
