"""Values read off the running parts now and then; decisions neither ask nor wait for them."""

import datetime
import itertools
import time
from collections.abc import Iterable
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from scheduler.claims.shared_reservations import SharedReservations
from scheduler.hosts import capacity
from scheduler.hosts.host_manager import HostManager
from scheduler.metrics import catalogue
from scheduler.metrics.samples import Samples
from scheduler.notifications import Outbox
from scheduler.rpc.in_flight import InFlightRequests
from scheduler.rpc.server import Server

#: Those of the library; none is registered where it would be shown besides ours.
_OF_PROCESSES: Final = (
    ProcessCollector(registry=None),
    PlatformCollector(registry=CollectorRegistry()),
    GCCollector(registry=CollectorRegistry()),
)
MOST_FLAVORS: Final = 200
"""The first so many are shown: each has a series per zone."""
_BYTES: Final = 1024 * 1024
_OF_ZONES: Final = {
    capacity.MEMORY: (catalogue.ZONE_MEMORY, _BYTES),
    capacity.VCPUS: (catalogue.ZONE_VCPUS, 1),
    capacity.DISK: (catalogue.ZONE_DISK, _BYTES),
}


def read_process(samples: Samples) -> None:
    """The metrics that every program has, of this process."""
    for family in itertools.chain.from_iterable(each.collect() for each in _OF_PROCESSES):
        for sample in family.samples:
            if (metric := catalogue.BY_NAME.get(sample.name)) is not None:
                labels = [sample.labels[name] for name in metric.labels]
                samples.set(metric, sample.value, *labels)
    samples.set(catalogue.WORKER_STARTS, 1)


def read_capacity(samples: Samples, hosts: HostManager, zone: str, flavors: Iterable[Any]) -> None:
    """Capacity of each zone, *zone* being that of hosts in none, and the servers that still fit."""
    fleet = capacity.Capacity.from_manager(hosts, zone)
    for found in fleet.totals()[1:]:
        name = found["zone"]
        samples.set(catalogue.ZONE_HOSTS, found["hosts"], name, "all")
        samples.set(catalogue.ZONE_HOSTS, found["taking"], name, "taking")
        for resource, (metric, unit) in _OF_ZONES.items():
            for kind, amount in found[resource].items():
                samples.set(metric, amount * unit, name, kind)
    for each in fleet.fits(itertools.islice(flavors, MOST_FLAVORS)):
        if each["fits"] is not None:
            for name, count in each["zones"].items():
                samples.set(catalogue.FITS, count, each["flavor"], name)


def read_in_flight(samples: Samples, in_flight: InFlightRequests) -> None:
    samples.set(catalogue.IN_FLIGHT, in_flight.in_hand)
    samples.set(catalogue.OLDEST, max((age for _, age in in_flight.requests()), default=0.0))


def read_consumer(samples: Samples, consumer: Server | None) -> None:
    samples.set(catalogue.CONSUMER_UP, consumer is not None and consumer.is_consuming)
    if consumer is None:
        return
    for kind, count in dict(consumer.dispatcher.refused).items():
        samples.set(catalogue.REFUSED, count, kind)
    for path, count in consumer.messages.items():
        samples.set(catalogue.MESSAGES, count, path)
    samples.set(catalogue.UNDECODABLE, consumer.deliveries.undecodable)
    samples.set(catalogue.CALL_HEARTBEATS_FAILED, consumer.dispatcher.monitor.failed)
    samples.set(catalogue.ANSWERS_DROPPED, consumer.answers_dropped)


def read_notifications(samples: Samples, sending: Outbox) -> None:
    samples.set(catalogue.NOTIFICATIONS_DROPPED, sending.dropped)
    samples.set(catalogue.NOTIFICATIONS_WAITING, sending.waiting)


def read_journal(samples: Samples, journal: Any) -> None:
    samples.set(catalogue.RECORDING_GAPS, journal.gaps)
    samples.set(catalogue.RECORDING_LEFT_OUT, journal.left_out)


def read_manager(samples: Samples, manager: Any) -> None:
    samples.set(catalogue.REPEATED, manager.replies.repeated)
    if (shadow_report := getattr(manager.driver, "shadow_report", None)) is not None:
        for result, count in shadow_report()["results"].items():
            samples.set(catalogue.SHADOW_REQUESTS, count, result)
    hosts = manager.driver.host_manager
    learned_at = getattr(getattr(manager.driver, "claims", None), "learned_at", None)
    if learned_at is not None:
        samples.set(catalogue.PLACEMENT_AGE, time.monotonic() - learned_at)
    if (age := hosts.state_age_seconds) is not None:
        samples.set(catalogue.STATE_AGE, age)
    samples.read_at = hosts.read_at or float("-inf")
    for cell in hosts.cell_health():
        labels = cell.uuid, cell.name or ""
        samples.set(catalogue.CELL_UP, not cell.is_left_out, *labels)
        samples.set(catalogue.CELL_FAILURES, cell.failures, *labels)
        if cell.read_at is not None:
            read_at = cell.read_at.replace(tzinfo=datetime.UTC).timestamp()
            samples.set(catalogue.CELL_READ_AT, read_at, *labels)
    with hosts.lock:
        states = capacity.host_states(hosts.table, hosts.clock(), hosts.service_down_time_seconds)
        samples.set(catalogue.INSTANCES, len(hosts.table.host_of_instance))
        is_shared = isinstance(hosts.reservations, SharedReservations)
        reserved = catalogue.CLAIMS_OPEN if is_shared else catalogue.PICKS_OPEN
        samples.set(reserved, sum(1 for _ in hosts.reservations))
        if is_shared:
            samples.set(catalogue.CLAIMS_GONE_BACK, hosts.reservations.histories_lost)
    for state, count in states.items():
        samples.set(catalogue.HOSTS, count, state)
