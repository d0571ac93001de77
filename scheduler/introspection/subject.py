"""The worker that is asked."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field

from oslo_config import cfg

from scheduler import errors
from scheduler.hosts.host_manager import HostManager
from scheduler.manager import SchedulerManager


@dataclass(frozen=True)
class Subject:
    """One of *workers* workers of the daemon *host*; they are numbered from 1 on."""

    conf: cfg.ConfigOpts
    manager: SchedulerManager
    number: int
    workers: int
    pid: int = field(default_factory=os.getpid)
    started_at: float = field(default_factory=time.time)
    #: Held by an answer that needs much memory, so that there is one of them at a time.
    large: threading.Lock = field(default_factory=threading.Lock)

    @property
    def host(self) -> str:
        """The name of the daemon."""
        name: str = self.conf.host
        return name

    @property
    def known_host_manager(self) -> HostManager:
        """Who keeps the state of the hosts; InvalidRequest if that is not known how."""
        manager = self.manager.driver.host_manager
        if not isinstance(manager, HostManager):
            reason = f"{type(manager).__name__} keeps its state in a way of its own"
            raise errors.InvalidRequest(field="[scheduler] host_manager", reason=reason)
        return manager
