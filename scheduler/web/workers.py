"""The workers of one daemon, as the one that was asked sees them.

Every worker answers the same routes on a socket of its own in a folder that only this daemon
can enter.  What a worker knows alone is asked of each under a path that asks nobody else.
"""

import contextlib
import http.client
import os
import pathlib
import socket
from dataclasses import dataclass
from typing import Final

from oslo_log import log as logging

from scheduler.concurrency import native
from scheduler.web.server import BACKLOG, Routes, Server

LOG = logging.getLogger(__name__)

_SUFFIX: Final = ".socket"


@dataclass(frozen=True)
class Answer:
    """Answer of the worker *pid*; *status* is None for one that did not answer in time."""

    pid: int
    status: int | None
    body: bytes = b""


class Workers:
    """The sockets in *folder*, one per worker and named after its process; None: there are none.

    Nobody waits for the others for longer than *timeout_seconds*.
    """

    def __init__(self, folder: pathlib.Path | None, timeout_seconds: float = 2.0) -> None:
        self._folder = folder
        self._timeout_seconds = timeout_seconds

    @property
    def pids(self) -> list[int]:
        if self._folder is None:
            return []
        return sorted(int(path.stem) for path in self._folder.glob(f"*{_SUFFIX}"))

    def join(self, routes: Routes, ending: contextlib.ExitStack) -> None:
        """Let the others ask this process for *routes* until *ending*."""
        if self._folder is None:
            return
        path = _path(self._folder, os.getpid())
        path.unlink(missing_ok=True)
        listening = native("socket").socket(socket.AF_UNIX, socket.SOCK_STREAM)
        ending.callback(listening.close)
        listening.bind(str(path))
        ending.callback(path.unlink, missing_ok=True)
        listening.listen(BACKLOG)
        server = Server(listening, routes, "http-worker")
        server.start()
        ending.callback(server.stop)

    def ask(self, target: str) -> list[Answer]:
        """Answers of every worker, this one included, to *target*, in the order of pids."""
        answers: dict[int, Answer | None] = {}

        def ask(pid: int) -> None:
            answers[pid] = self.ask_one(pid, target)

        asking = [native("threading").Thread(target=ask, args=(pid,)) for pid in self.pids]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        return [answer for _pid, answer in sorted(answers.items()) if answer is not None]

    def ask_one(self, pid: int, target: str) -> Answer | None:
        """Answer of the worker *pid* to *target*; None if there is no such worker."""
        if self._folder is None:
            return None
        path = _path(self._folder, pid)
        asking = http.client.HTTPConnection("localhost")
        asking.sock = native("socket").socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            asking.sock.settimeout(self._timeout_seconds)
            asking.sock.connect(str(path))
            asking.request("GET", target)
            response = asking.getresponse()
            return Answer(pid, response.status, response.read())
        except (FileNotFoundError, ConnectionRefusedError):
            path.unlink(missing_ok=True)  # of a worker that was killed
            return None
        except (OSError, http.client.HTTPException) as error:
            LOG.debug("Worker %d does not answer: %s", pid, error)
            return Answer(pid, None)
        finally:
            asking.close()


def _path(folder: pathlib.Path, pid: int) -> pathlib.Path:
    return folder / f"{pid}{_SUFFIX}"
