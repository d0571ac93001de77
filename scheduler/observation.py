"""What a daemon shows of itself over HTTP: one address, and behind it every worker."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import tempfile
from typing import Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler.web import server
from scheduler.web.routes import Routes
from scheduler.web.server import Server
from scheduler.web.workers import Workers

LOG = logging.getLogger(__name__)

OPTION: Final = "[metrics_endpoint] host, port"


class Observation:
    """The address and the private folder that all workers share; made before they are forked.

    ``routes`` are this process's; ``workers`` are there to be asked.  Without *listening*
    nothing is served, and routes may be added all the same.
    """

    def __init__(self, listening: socket.socket | None = None) -> None:
        self._listening = listening
        self._master_pid = os.getpid()
        self._folder: pathlib.Path | None = None
        if listening is not None:
            self._folder = pathlib.Path(tempfile.mkdtemp(prefix="nova-scheduler-"))
        self.routes = Routes()
        self.workers = Workers(self._folder)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Observation:
        """As ``[metrics_endpoint]`` says; raises ConfigurationError if it cannot be served."""
        wanted = conf.metrics_endpoint
        if not wanted.enabled:
            return cls()
        listening = server.bind(wanted.host, wanted.port, OPTION)
        host, port = listening.getsockname()[:2]
        LOG.info("Metrics and health are served at http://%s/", server.at(host, port))
        return cls(listening)

    @property
    def is_enabled(self) -> bool:
        """Whether anybody can look."""
        return self._listening is not None

    def serve(self, ending: contextlib.ExitStack) -> None:
        """Answer, in a worker, until *ending*; other workers answer at the same address."""
        if self._listening is None:
            return
        self.workers.join(self.routes, ending)
        public = Server(self._listening, self.routes, "http")
        public.start()
        ending.callback(public.stop)

    def close(self) -> None:
        """Leave nothing behind; called when the workers have ended."""
        if os.getpid() != self._master_pid:
            return
        if self._listening is not None:
            self._listening.close()
        if self._folder is not None:
            shutil.rmtree(self._folder)
