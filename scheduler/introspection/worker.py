"""The worker that is asked, and the checks of the arguments that it is asked with."""

from __future__ import annotations

import datetime
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

import scheduler
from scheduler import errors
from scheduler.explain.answer import answer
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
    large: threading.RLock = field(default_factory=threading.RLock)

    @property
    def host(self) -> str:
        """The name of the daemon."""
        return str(self.conf.host)

    @property
    def known_host_manager(self) -> HostManager:
        """Who keeps the state of the hosts; InvalidRequest if that is not known how."""
        manager = self.manager.driver.host_manager
        if not isinstance(manager, HostManager):
            reason = f"{type(manager).__name__} keeps its state in a way of its own"
            raise errors.InvalidRequest(field="[scheduler] host_manager", reason=reason)
        return manager


def worker(subject: Subject) -> dict[str, Any]:
    """Number, process and version of the worker; ``workers`` says how many it should have."""
    driver = subject.manager.driver
    since = datetime.datetime.fromtimestamp(subject.started_at, datetime.UTC)
    return {
        "host": subject.host,
        "worker": subject.number,
        "workers": subject.workers,
        "pid": subject.pid,
        "version": scheduler.__version__,
        "started_at": since.isoformat(timespec="seconds"),
        "driver": type(getattr(driver, "driver", driver)).__name__,
    }


def explain(subject: Subject, name: str, on_host: str | None = None) -> list[dict[str, Any]]:
    """The decisions on the request id or instance uuid *name* that this worker remembers."""
    return answer(subject.manager, name, on_host)


def require_texts(field: str, value: Any) -> None:
    """*value* has to be a list of texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise errors.InvalidRequest(field=field, reason="not a list of texts")
