"""Nova's ``scheduler.driver``: the base class, and what a driver of Havana's kind does to rows.

Reference page scheduling, section 13.1.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from scheduler.builds.rows import SERVICE, InstanceBook
from scheduler.db.database import Database
from scheduler.drivers.base import Scheduler
from scheduler.notifications.notifier import Notifier
from scheduler.rpc.transport import get_notification_transport


def names(conf: cfg.ConfigOpts) -> Mapping[str, Any]:
    """What the module offers in a process that is configured by *conf*."""
    book = InstanceBook(ResourcesOfProcess(conf))
    return {
        "Scheduler": Scheduler,
        "instance_update_db": book.instance_update_db,
        "handle_schedule_error": book.handle_schedule_error,
    }


class ResourcesOfProcess:
    """Those that *conf* names; connects when they are first needed.

    That is after the workers have been forked.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self.host: str = conf.host

    @functools.cached_property
    def database(self) -> Database:
        """Where the instances are."""
        return Database.from_conf(self._conf)

    @functools.cached_property
    def notifier(self) -> Notifier:
        """Who is told."""
        transport = get_notification_transport(self._conf)
        return Notifier(transport, f"{SERVICE}.{self.host}")
