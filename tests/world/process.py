"""One of the project's programs as a process of its own."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from scheduler import concurrency
from tests.waiting import wait_until
from tests.world.zygote import Forked, Zygote

START_SECONDS = 60
COMMAND_SECONDS = 100
STOP_SECONDS = 60
BACKENDS = (concurrency.EVENTLET, concurrency.THREADING)

_DATAGRAM_BYTES = 4096
#: There while coverage measures what is run, and how long a program may take to end then.
MEASURED, WRITING_SECONDS = "COVERAGE_PROCESS_CONFIG", 20


def program(name: str) -> str:
    """The console script *name* of the environment that runs the tests."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise FileNotFoundError(f"{path}: is the project installed in this environment?")
    return str(path)


def environment(backend: str) -> dict[str, str]:
    """The tests' environment, without anything that configures the programs, for *backend*."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    kept.pop("NOTIFY_SOCKET", None)
    threading = backend == concurrency.THREADING
    return {**kept, concurrency.ENVIRONMENT_VARIABLE: "1" if threading else "no"}


#: The command that always runs on threads.
_MANAGE: Final = "nova-scheduler-manage"
_zygotes: dict[str, Zygote] | None = None


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Fork programs from processes that have imported them, instead of starting them anew."""
    global _zygotes
    _zygotes = {}
    try:
        yield
    finally:
        for each in _zygotes.values():
            each.close()
        _zygotes = None


def import_programs(backend: str) -> None:
    """Have a process ready that those of *backend* are forked from, where they are."""
    if _zygotes is not None and backend not in _zygotes:
        _zygotes[backend] = Zygote(backend)


def start(
    command: Sequence[str], folder: Path, variables: Mapping[str, str], output: tuple[Path, Path]
) -> subprocess.Popen[bytes] | Forked:
    """Start a program in a session of its own; *output*: files of standard output and error.

    It is started anew where the interpreter itself has something to do: preload, measure.
    """
    is_script = Path(command[0]).parent == Path(sys.executable).parent
    if _zygotes is None or not is_script or {"LD_PRELOAD", MEASURED} & variables.keys():
        with output[0].open("wb") as stdout, output[1].open("wb") as stderr:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
    on_threads = variables[concurrency.ENVIRONMENT_VARIABLE] == "1" or command[0].endswith(_MANAGE)
    backend = concurrency.THREADING if on_threads else concurrency.EVENTLET
    for path in output:
        path.touch()
    import_programs(backend)
    return _zygotes[backend].start(command, folder, variables, output)


def run(
    name: str,
    *arguments: str,
    folder: Path,
    backend: str = concurrency.THREADING,
    run_by: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a program to whatever end it takes, by itself or by the command *run_by*."""
    command = [*run_by, program(name), *arguments]
    with tempfile.TemporaryDirectory() as made:
        output = Path(made, "stdout"), Path(made, "stderr")
        process = start(command, folder, environment(backend), output)
        try:
            status = process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(command, status, *(each.read_text() for each in output))


class NotifySocket:
    """The receiving end of systemd's readiness protocol (reference page service, section 8.4).

    It takes messages all the time, as systemd does: who tells of himself is never held up.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nst-notify-")
        self.path = f"{self._folder.name}/socket"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self.messages: list[str] = []
        self._came = threading.Semaphore(0)
        self._taking = threading.Thread(target=self._take, daemon=True)
        self._taking.start()

    def _take(self) -> None:
        while message := self._socket.recv(_DATAGRAM_BYTES):
            self.messages += message.decode().splitlines()
            self._came.release()

    def receive(self, timeout_seconds: float) -> bool:
        """Wait for one message that is in :attr:`messages` then; False if none came."""
        if not timeout_seconds:
            return self._came.acquire(blocking=False)
        return self._came.acquire(timeout=timeout_seconds)

    def close(self) -> None:
        """Remove the socket; it may be gone already."""
        if not self._taking.is_alive():
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.path)
        self._taking.join()
        self._socket.close()
        self._folder.cleanup()


class Daemon:
    """A started program; everything it prints is kept in files.

    *arguments* follow the program's name, *run_by* runs it, if it does not run by itself.  The
    process leads a process group of its own, which
    is the only thing that is ever signalled here.
    """

    def __init__(
        self,
        name: str,
        arguments: list[str],
        folder: Path,
        backend: str = concurrency.EVENTLET,
        extra_environment: Mapping[str, str] | None = None,
        run_by: Sequence[str] = (),
    ) -> None:
        self.name = name
        folder.mkdir(parents=True, exist_ok=True)
        self._stdout_path = folder / "stdout"
        self._stderr_path = folder / "stderr"
        self.notified = NotifySocket()
        self._process = start(
            [*run_by, program(name), *arguments],
            folder,
            {
                **environment(backend),
                "NOTIFY_SOCKET": self.notified.path,
                **(extra_environment or {}),
            },
            (self._stdout_path, self._stderr_path),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdout(self) -> str:
        """What it has printed to standard output so far."""
        return self._stdout_path.read_text(encoding="utf-8", errors="replace")

    @property
    def log(self) -> str:
        """What it has printed to standard error so far: its log, unless configured otherwise."""
        return self._stderr_path.read_text(encoding="utf-8", errors="replace")

    @property
    def exit_code(self) -> int | None:
        """How the main process ended (-N: by signal N); None while it runs."""
        return self._process.poll()

    def wait_ready(self, timeout_seconds: float = START_SECONDS) -> Self:
        """Return once ``READY=1`` was received: all workers serve."""
        deadline = time.monotonic() + timeout_seconds
        while "READY=1" not in self.notified.messages:
            ended = self.exit_code  # asked first, so that a last message is not overlooked
            if self.notified.receive(0.2):
                continue
            if ended is not None:
                raise AssertionError(f"{self.name} ended with {ended}:\n{self._output()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name} is not ready:\n{self._output()}")
        return self

    @property
    def is_announced(self) -> bool:
        while self.notified.receive(0):
            pass
        return "READY=1" in self.notified.messages

    def wait_log(self, text: str, timeout_seconds: float = 60.0) -> Self:
        wait_until(
            lambda: text in self.log,
            timeout_seconds,
            lambda: f"{text!r} in the log of {self.name}:\n{self._output()}",
        )
        return self

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def terminate(self, timeout_seconds: float = STOP_SECONDS) -> int:
        """Ask it to end (SIGTERM to the main process only) and wait; returns the exit code."""
        self._process.terminate()
        return self.wait(timeout_seconds)

    def wait(self, timeout_seconds: float = STOP_SECONDS) -> int:
        """Wait for its own end; returns the exit code."""
        try:
            return self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end:\n{self._output()}") from None

    def kill(self) -> None:
        """End it with all its workers at once, as a crash would."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended already, or has no group of its own yet
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Leave nothing of it behind; what coverage measures may write down first what it ran."""
        if MEASURED in os.environ and self.exit_code is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(WRITING_SECONDS)
        self.kill()
        self.notified.close()

    def _output(self) -> str:
        return self.stdout + self.log
