"""A process that has imported the project's programs and forks whoever is to be one.

Importing takes 1.3 s of processor time, six hundred times.  ``python -m tests.world.zygote
eventlet`` reads a program per line, as JSON, and writes the process id of each, then its status.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import logging
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cliff.commandmanager import CommandManager

from scheduler import concurrency

#: What the programs import, sooner or later: all of some packages, and some modules.
_PACKAGES: Final = (
    *("scheduler.filters", "scheduler.weights", "scheduler.drivers", "scheduler.claims"),
    *("scheduler.cmd", "scheduler.daemon", "conductor_stub"),
)
_MODULES: Final = (
    *("scheduler.cli.app", "oslo_messaging._drivers.impl_rabbit", "kombu.transport.pyamqp"),
    *("pymysql", "psycopg", "cliff.formatters.json_format", "cliff.formatters.table"),
)
_READ_BYTES: Final = 65536
#: Where others leave it a fiftieth of a processor, to import takes minutes.
PATIENCE_SECONDS: Final = 200
#: In a forked program: its exit status, by its process id.
_ends: dict[int, int] = {}


class Forked:
    """A forked program, with as much of ``subprocess.Popen`` as is needed."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self.pid = pid
        self._zygote = zygote

    def poll(self) -> int | None:
        """The exit status (-N: by signal N); None while it runs."""
        return self._zygote.statuses.get(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises TimeoutExpired after *timeout* seconds."""
        with self._zygote.told:
            if not self._zygote.told.wait_for(lambda: self.poll() is not None, timeout):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return self._zygote.statuses[self.pid]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Zygote:
    """The process for one concurrency back end, as the tests see it."""

    def __init__(self, backend: str) -> None:
        self.told = threading.Condition()
        self.statuses: dict[int, int] = {}
        self._pids: list[int] = []
        self._asking = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def start(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        output: tuple[Path, Path],
    ) -> Forked:
        """Start *command* in *folder*; *output*: files of standard output and standard error."""
        asked = {"command": list(command), "folder": str(folder), "environment": dict(environment)}
        line = json.dumps({**asked, "output": [str(path) for path in output]})
        with self._asking:
            assert self._process.stdin is not None
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
            with self.told:
                if not self.told.wait_for(lambda: self._pids, PATIENCE_SECONDS):
                    raise AssertionError("the zygote does not answer")
                return Forked(self, self._pids.pop())

    def close(self) -> None:
        """End it; what it has started is not touched."""
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            pid, *status = json.loads(line)
            with self.told:
                if status:
                    self.statuses[pid] = status[0]
                else:
                    self.statuses.pop(pid, None)
                    self._pids.append(pid)
                self.told.notify_all()


def _reap(*_signal: object) -> None:
    """Tell of whoever has ended."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            _tell([found[0], os.waitstatus_to_exitcode(found[1])])


def _tell(values: list[int]) -> None:
    os.write(1, json.dumps(values).encode() + b"\n")


def _become(asked: Mapping[str, Any]) -> int:
    """Be the program, as a new session, like a process that was started anew."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    for number, path in enumerate(["/dev/null", *asked["output"]]):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    added = asked["environment"].get("PYTHONPATH", "").split(":")
    sys.path[1:1] = [each for each in added if each and each not in sys.path]
    sys.argv[:] = asked["command"]
    try:
        runpy.run_path(asked["command"][0], run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    return 0


def _end() -> None:
    """End a program here: taking all modules apart would take longer than most programs run."""
    status = _ends.get(os.getpid())
    if status is not None:  # else it is a child of a program, with a status of its own
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(backend: str) -> int:
    """Fork whatever is asked for, until nobody can ask any more; returns in those forked, too."""
    atexit.register(_end)  # the first, so that it runs last
    concurrency.activate(backend)
    for package in map(importlib.import_module, _PACKAGES):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    for each in _MODULES:
        importlib.import_module(each)
    CommandManager("none")  # reads what is installed, once for all
    gc.freeze()  # nothing of all that is to be looked at, and so copied, in each program
    signal.signal(signal.SIGCHLD, _reap)
    begun = b""
    while read := os.read(0, _READ_BYTES):
        *lines, begun = (begun + read).split(b"\n")
        for line in lines:
            # A process id is told before the end of the process.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            if not (pid := os.fork()):
                return _ends.setdefault(os.getpid(), _become(json.loads(line)))
            _tell([pid])
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
