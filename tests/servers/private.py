"""What the private servers share: an own folder, own ports, a readiness check, clean ends.

Processes are run by mirakuru, which marks all descendants of a server in their environment:
whatever ends here is found by that mark, so nothing that others started is ever touched.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import mirakuru
import port_for

START_SECONDS = 180
LOOPBACK = "127.0.0.1"

# Below the ports that the kernel gives to clients, so that a server which is stopped and started
# again finds its port still free.
_PORTS = range(20000, 30000)
_IN_MEMORY = Path("/dev/shm")
#: Eight servers, of which the largest writes 250 MB.
_ROOM_BYTES = 2 * 2**30


def room() -> Path | None:
    """A folder in memory, where making tables waits for no disk, if there is enough; else None."""
    try:
        return _IN_MEMORY if shutil.disk_usage(_IN_MEMORY).free > _ROOM_BYTES else None
    except OSError:
        return None


class _Process(mirakuru.Executor):
    """A process that counts as started once *answers* says so."""

    def __init__(self, command: list[str], answers: Callable[[], bool], **options: Any) -> None:
        super().__init__(command, timeout=START_SECONDS, **options)
        self._answers = answers

    def pre_start_check(self) -> bool:
        """Nobody else can be on ports and folders that were just made up."""
        return False

    def after_start_check(self) -> bool:
        return self._answers()


class Opened:
    """It starts on entry and is closed at the end, also if it does not start."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_error: object) -> None:
        self.close()


class PrivateServer(Opened):
    """One server process on a temporary folder of its own.

    A subclass says how it is set up, run and asked whether it is ready.  Use it as a context
    manager: it is started on entry, and stopped and removed on exit.
    """

    name: ClassVar[str]
    #: The user that the server runs as when the tests run as root.
    account: ClassVar[str | None] = None
    stop_signal: ClassVar[int] = signal.SIGTERM
    #: The exit code of a regular stop.
    stopped_code: ClassVar[int] = 0

    def __init__(self) -> None:
        # Not pytest's own folder: that is closed to other accounts, and socket paths are short.
        self.folder = Path(tempfile.mkdtemp(prefix=f"nst-{self.name}-", dir=room()))
        self.log_path = self.folder / f"{self.name}.log"
        self._log: IO[str] | None = None
        self._reservations: list[socket.socket] = []
        self._process: _Process | None = None
        if account := self._identity().get("user"):
            shutil.chown(self.folder, account)

    def reserve_port(self) -> int:
        """A free TCP port that no other test run on this machine takes before :meth:`close`."""
        while True:
            port = port_for.select_random(set(_PORTS))
            # A server may need seconds until it listens.  Until then the same number of UDP,
            # which none of them uses, tells other runs that the port is taken.
            reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                reservation.bind((LOOPBACK, port))
            except OSError:
                reservation.close()
                continue
            self._reservations.append(reservation)
            return port

    def set_up(self) -> None:
        """Fill the folder with what the server needs before its first start."""
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """What is added to the environment of the tests for the server and its tools."""
        return {}

    def answers(self) -> bool:
        """Whether a client's first question is answered."""
        raise NotImplementedError

    def start(self) -> Self:
        """Start, or start again after :meth:`stop` or :meth:`kill`; returns when it answers."""
        if self._process is None:
            self.set_up()
            self._process = self._make_process()
        try:
            self._process.start()
        except (mirakuru.TimeoutExpired, mirakuru.ProcessExitedWithError) as error:
            raise RuntimeError(f"{self.name} did not start: {error}\n{self.log}") from error
        return self

    def stop(self) -> None:
        """Ask the server to end, as its operator would, and wait for it; data stays."""
        if self._process is not None and self._process.process is not None:
            self.resume()  # a paused process would not see the request
            self._process.stop()

    def kill(self) -> None:
        """End the server and all its descendants at once; data stays as a crash leaves it."""
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """Hold the server's processes: connections stay open, nobody answers."""
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let the processes go on after :meth:`pause`."""
        os.killpg(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End the server for good and remove its folder."""
        try:
            self.stop()
        finally:
            self.kill()
            if self._log is not None:
                self._log.close()
            for reservation in self._reservations:
                reservation.close()
            shutil.rmtree(self.folder)

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def run_tool(self, command: list[str], text_input: str | None = None) -> str:
        """Run one of the server's tools to its end; returns its output, raises with it."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **self.environment()},
            input=text_input,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
            **self._identity(),
        )
        if done.returncode:
            output = done.stdout + done.stderr
            raise RuntimeError(f"{command[0]} ended with {done.returncode}: {output}")
        return done.stdout

    def _make_process(self) -> _Process:
        self._log = self.log_path.open("a", encoding="utf-8")
        return _Process(
            self.command(),
            self.answers,
            cwd=str(self.folder),
            envvars=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stop_signal=self.stop_signal,
            expected_returncode=self.stopped_code,
            popen_kwargs=self._identity(),
        )

    def _identity(self) -> dict[str, Any]:
        if os.getuid() != 0 or self.account is None:
            return {}
        group = pwd.getpwnam(self.account).pw_gid
        return {"user": self.account, "group": group, "extra_groups": []}

    @property
    def pid(self) -> int:
        """The server's process; RuntimeError where none runs."""
        if self._process is None or self._process.process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process.process.pid


def unique_name(prefix: str) -> str:
    """A name for a database or virtual host that no other test has."""
    return f"{prefix}_{uuid.uuid4().hex[:12]}"
