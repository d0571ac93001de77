"""Who the worker is, and how many there are: what every command asks first."""

from __future__ import annotations

import datetime
from typing import Any

import scheduler
from scheduler.introspection.subject import Subject


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
