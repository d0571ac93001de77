"""Contents of Nova's modules that have no module of their own here."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from oslo_log import log as oslo_log

from scheduler.builds.rows import SERVICE, InstanceRows
from scheduler.db.database import Database
from scheduler.drivers.base import Scheduler
from scheduler.notifications.notifier import Notifier
from scheduler.rpc.client import ComputeClient
from scheduler.rpc.transport import get_notification_transport, get_transport


def as_written(message: str) -> str:
    """Nova's ``_`` and its siblings: this project has no translations."""
    return message


class AuditingLogger(oslo_log.KeywordArgumentAdapter):
    """A logger that knows ``audit``, which is INFO here, and ``warn`` on every Python."""

    def audit(self, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log at INFO."""
        self.log(logging.INFO, msg, *args, **kwargs)

    def warn(self, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log at WARNING."""
        self.log(logging.WARNING, msg, *args, **kwargs)


def get_logger(name: str = "unknown", version: str = "unknown") -> AuditingLogger:
    """Nova's ``getLogger``."""
    return AuditingLogger(logging.getLogger(name), {"version": version})


def compute_rpcapi(conf: cfg.ConfigOpts) -> Mapping[str, Any]:
    """``compute.rpcapi`` in a process configured by *conf*: its API is made without arguments."""

    class ComputeAPI(ComputeClient):
        """Casts on the bus that is configured; connects with its first cast."""

        def __init__(self) -> None:
            super().__init__(get_transport(conf), conf.compute_topic)

    return {"ComputeAPI": ComputeAPI}


def driver(conf: cfg.ConfigOpts) -> Mapping[str, Any]:
    """``scheduler.driver``: the base class, and functions of Havana's drivers on rows.

    They connect when they are first called, after the workers have been forked (reference page
    scheduling, 13.1).
    """

    @functools.cache
    def database() -> Database:
        return Database.from_conf(conf)

    @functools.cache
    def notifier() -> Notifier:
        return Notifier(get_notification_transport(conf), f"{SERVICE}.{conf.host}")

    rows = InstanceRows(database, notifier, conf.host)
    return {
        "Scheduler": Scheduler,
        "instance_update_db": rows.instance_update_db,
        "handle_schedule_error": rows.handle_schedule_error,
    }
