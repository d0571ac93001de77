"""Drivers that decide on rows in memory, as the daemon does on those of its database."""

import datetime
from typing import Any

from scheduler import drivers, errors, objects
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.reservations import Reservations
from scheduler.replay.row_fleet import RowFleet, moment
from tests.builders import a_conf, a_request
from tests.unit.evaluation.builders import NOW
from tests.waiting import Clock


def a_clock() -> Clock:
    """One that stands at the time of the fleets."""
    return Clock(moment(NOW).replace(tzinfo=datetime.UTC).timestamp())


def a_driver(
    fleet: dict[str, Any],
    driver: str = "filter_scheduler",
    *,
    clock: Clock | None = None,
    reservations: Any = Reservations,
    options: dict[str, Any] | None = None,
    **filter_scheduler: Any,
) -> Any:
    """A *driver* on *fleet*, with the RAM filter and weigher unless told otherwise.

    *options* are those of ``[scheduler]`` and, under their own names, of ``[DEFAULT]``.
    """
    conf = a_conf(
        **{
            "enabled_filters": ["RamFilter"],
            "weight_classes": ["nova.scheduler.weights.ram.RAMWeigher"],
            **filter_scheduler,
        }
    )
    for name, value in {"driver": driver, **(options or {})}.items():
        conf.set_override(name, value, group="scheduler" if name in conf.scheduler else None)
    manager = HostManager(conf, RowFleet(fleet), clock or a_clock(), reservations)
    return drivers.load(conf, manager)


def select(driver: Any, request: objects.RequestSpec, *uuids: str, **how: Any) -> list[str]:
    answer = driver.select_destinations(None, request, list(uuids) or None, **how)
    return [first.service_host for first, *_others in answer]


def select_if_any(driver: Any, memory_mb: int, *uuids: str) -> list[str]:
    """The hosts chosen for servers of that size; none if there is none."""
    try:
        return select(driver, a_request(flavor={"memory_mb": memory_mb}), *uuids)
    except errors.NoValidHost:
        return []
