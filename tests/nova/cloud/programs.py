"""Programs of the cloud: Nova's and this project's, each a process that reads one ``nova.conf``."""

import contextlib
import sys
from pathlib import Path
from typing import Self

import mirakuru
import requests

from tests.nova.databases import THREADING
from tests.servers.private import LOOPBACK, PrivateServer
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.venvs import CHECKOUT

STARTS = 3


class Ended(RuntimeError):
    """A program ended instead of serving."""


class Program(PrivateServer):
    """A process on a machine called *host*, with a folder of its own for what it keeps."""

    name = "nova"

    def __init__(self, host: str, *command: str) -> None:
        super().__init__()
        self._host, self._command = host, command

    def set_up(self) -> None:
        """All is in the one file."""

    def command(self) -> list[str]:
        return list(self._command)

    def environment(self) -> dict[str, str]:
        """The two options in which machines differ: the environment wins over the file."""
        options = {"OS_DEFAULT__HOST": self._host, "OS_DEFAULT__STATE_PATH": str(self.folder)}
        return {**options, "TMPDIR": str(self.folder)}

    def start(self) -> Self:
        """Start it, again if it has ended by itself, as systemd does.

        Nova 34 reads its options on several threads at the start, and sometimes ends with
        "dictionary changed size during iteration".
        """
        for _try in range(STARTS - 1):
            with contextlib.suppress(Ended):
                return self._started()
        return self._started()

    def _started(self) -> Self:
        try:
            return super().start()
        except RuntimeError as error:
            if isinstance(error.__cause__, mirakuru.ProcessExitedWithError):
                raise Ended(str(error)) from error
            raise

    def close(self) -> None:
        """End it at once: an orderly end takes seconds, and nothing is kept."""
        self.kill()
        super().close()


class Service(Program):
    """A service of Nova, or what takes its place: it has started once it listens to its queue."""

    def __init__(self, rabbitmq: RabbitMQ, host: str, path: Path, config: Path) -> None:
        super().__init__(host, str(path), "--config-file", str(config))
        self._rabbitmq = rabbitmq
        self._queue = f"{path.name.removeprefix('nova-')}.{host}"
        self._is_nova = path.parent != Path(sys.executable).parent

    def environment(self) -> dict[str, str]:
        return super().environment() | (THREADING if self._is_nova else {})

    def answers(self) -> bool:
        """Whether it consumes."""
        with self._rabbitmq.connect() as bus, contextlib.suppress(bus.channel_errors):
            return bool(bus.channel().queue_declare(self._queue, passive=True).consumer_count)
        return False


class Api(Program):
    """Nova's API, without a Keystone before it."""

    def __init__(self, host: str, python: Path, config: Path) -> None:
        super().__init__(host, str(python), "-m", "tests.nova.inside.serving")
        self._config = config
        self.port = self.reserve_port()
        self.endpoint = f"http://{LOOPBACK}:{self.port}/v2.1"

    def environment(self) -> dict[str, str]:
        return super().environment() | {
            **THREADING,
            "OS_NOVA_CONFIG_DIR": str(self._config.parent),
            "PORT": str(self.port),
            "PYTHONPATH": str(CHECKOUT),
        }

    def answers(self) -> bool:
        """Whether it refuses somebody unknown."""
        try:
            return requests.get(f"{self.endpoint}/", timeout=5).status_code == 401
        except requests.ConnectionError:
            return False
