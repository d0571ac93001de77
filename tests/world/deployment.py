"""All of the project's programs together, on one configuration file."""

import contextlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from scheduler import concurrency
from scheduler.db import migration
from scheduler.db.database import Database
from tests.world import databases, process
from tests.world.process import Daemon

Settings = Mapping[str, Mapping[str, Any]]
"""Configuration: group → option → value."""


class CommandFailed(AssertionError):
    """A command ended with another status than 0."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        super().__init__(f"{done.args} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        self.exit_code = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr


class Deployment:
    """A configuration file in *folder* and the processes that run on it.

    *settings* are added to, and win over, those made from the other arguments.
    """

    def __init__(
        self,
        folder: Path,
        transport_url: str,
        database_url: str,
        driver: str = "filter_scheduler",
        backend: str = concurrency.EVENTLET,
        settings: Settings | None = None,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.transport_url = transport_url
        self.database_url = database_url
        self.backend = backend
        self.config_path = folder / "nova.conf"
        self.daemons: list[Daemon] = []
        #: What runs the daemons, if they do not run by themselves.
        self.run_by: Sequence[str] = ()
        self._settings: dict[str, dict[str, Any]] = {
            "DEFAULT": {"transport_url": transport_url, "host": "controller", "debug": True},
            "database": {"connection": database_url},
            "oslo_concurrency": {"lock_path": str(folder)},
            # One per scheduler unless a test is about several: starting them takes time.
            "scheduler": {"driver": driver, "workers": 1},
        }
        self.configure(settings or {})

    def configure(self, settings: Settings) -> None:
        """Change the file; programs that run already do not notice by themselves."""
        for group, options in settings.items():
            self._settings.setdefault(group, {}).update(options)
        self.config_path.write_text(render(self._settings), encoding="utf-8")

    def database(self) -> contextlib.AbstractContextManager[Database]:
        return databases.opened(self.database_url)

    def sync_database(self) -> None:
        """Make the tables, as ``db sync`` does, but without starting a process for it."""
        with self.database() as database:
            migration.sync(database)

    def start(self, hosts: int = 4, *compute_options: str) -> Self:
        """Make the tables and start one scheduler, one conductor stub and the compute stub."""
        self.sync_database()
        started = [
            self.start_scheduler(),
            self.start_conductor(),
            self.start_computes(hosts, *compute_options),
        ]
        for daemon in started:
            daemon.wait_ready()
        return self

    def start_scheduler(
        self, *arguments: str, extra_environment: Mapping[str, str] | None = None
    ) -> Daemon:
        """Start a scheduler; wait for it with :meth:`Daemon.wait_ready`."""
        return self.start_daemon("nova-scheduler", *arguments, extra_environment=extra_environment)

    def start_conductor(self, *arguments: str) -> Daemon:
        return self.start_daemon("nova-conductor-stub", *arguments, "serve")

    def start_computes(self, hosts: int, *arguments: str) -> Daemon:
        """Start one process that is *hosts* compute hosts."""
        return self.start_daemon("nova-compute-stub", "--hosts", str(hosts), *arguments)

    def start_daemon(
        self, name: str, *arguments: str, extra_environment: Mapping[str, str] | None = None
    ) -> Daemon:
        """Start any of the programs on the configuration file."""
        daemon = Daemon(
            name,
            ["--config-file", str(self.config_path), *arguments],
            self.folder / f"{name}-{len(self.daemons)}",
            self.backend,
            extra_environment,
            self.run_by,
        )
        self.daemons.append(daemon)
        return daemon

    def boot(self, *arguments: str) -> list[dict[str, Any]]:
        """Run ``nova-conductor-stub boot`` and return its table's rows.

        Raises CommandFailed when it ends with another status than 0.
        """
        return self.rows("nova-conductor-stub", "boot", *arguments)

    def servers(self, *arguments: str) -> list[dict[str, Any]]:
        return self.rows("nova-conductor-stub", "list", *arguments)

    def manage(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a listing sub-command of ``nova-scheduler-manage`` and return its rows."""
        return self.rows("nova-scheduler-manage", *arguments)

    def rows(self, name: str, *arguments: str) -> list[dict[str, Any]]:
        """Run a command that prints a table, as JSON."""
        rows: list[dict[str, Any]] = json.loads(self.command(name, "-f", "json", *arguments))
        return rows

    def command(self, name: str, *arguments: str) -> str:
        """Run a program to its end; returns what it printed on standard output."""
        done = self.run(name, *arguments)
        if done.returncode:
            raise CommandFailed(done)
        return done.stdout

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program to whatever end it takes."""
        words = ("--config-file", str(self.config_path), *arguments)
        return process.run(name, *words, folder=self.folder, backend=self.backend)

    def close(self) -> None:
        for daemon in self.daemons:
            daemon.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def render(settings: Settings) -> str:
    """A configuration file's text; a list becomes one line per value."""
    lines: list[str] = []
    for group, options in settings.items():
        lines.append(f"[{group}]")
        for name, value in options.items():
            values = value if isinstance(value, list | tuple) else [value]
            lines += [f"{name} = {each}" for each in values]
    return "\n".join(lines) + "\n"
