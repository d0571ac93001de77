"""What the rows mean to an operator: zone, status and state."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from oslo_config import cfg

from scheduler import objects
from scheduler.db import rows

COMPUTE_TOPIC = "compute"


class Zones:
    """Availability zones by the aggregates (reference page scheduling, section 11)."""

    def __init__(self, aggregates: Iterable[objects.Aggregate], conf: cfg.ConfigOpts) -> None:
        self._default = conf.default_availability_zone
        self._internal = conf.internal_service_availability_zone
        self._zones: dict[str, list[str]] = {}
        for aggregate in aggregates:
            zone = aggregate.availability_zone
            if not zone:
                continue
            for host in aggregate.hosts:
                zones = self._zones.setdefault(host, [])
                if zone not in zones:
                    zones.append(zone)

    def of_host(self, host: str) -> str:
        """The zone of a compute host: that of its first aggregate that has one."""
        return self._zones.get(host, [self._default])[0]

    def of_service(self, service: objects.Service) -> str:
        """The zones shown for a service: all of its host, if it is a compute service."""
        if service.topic != COMPUTE_TOPIC:
            return self._internal
        return ",".join(self._zones.get(service.host, [self._default]))


def status(service: objects.Service | None) -> str:
    """Whether the operator wants it used; a host without a service counts as disabled."""
    return "disabled" if service is None or service.disabled else "enabled"


def state(service: objects.Service | None, conf: cfg.ConfigOpts) -> str:
    """``up`` or ``down`` by the last heartbeat (reference page scheduling, section 10).

    Without a heartbeat yet, the creation counts; a service forced down is down.
    """
    if service is None or service.forced_down:
        return "down"
    seen = service.last_seen_up or service.created_at
    if seen is None:
        return "down"
    silence = abs(rows.utcnow() - seen.replace(tzinfo=None))
    return "up" if silence <= datetime.timedelta(seconds=conf.service_down_time) else "down"
