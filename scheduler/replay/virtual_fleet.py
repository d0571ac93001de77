"""A fleet in memory, decided on by the daemon's own driver: no threads, database or bus.

Host table, host manager, reservations, engine and filter driver are those of the daemon.  A server
that was placed is a reservation that never expires; taking it away releases that.
"""

import contextlib
import copy
import dataclasses
import datetime
import functools
import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from oslo_context import context as oslo_context

from scheduler import errors, objects
from scheduler.claims.backend import Request
from scheduler.drivers.filter_scheduler import FilterScheduler, Settings
from scheduler.drivers.loading import host_manager_class
from scheduler.engine.evaluation import bounds_of, restore_bounds
from scheduler.engine.record import DecisionRecord
from scheduler.explain.recorder import error_text
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.host_state import Consumption
from scheduler.hosts.instances import BUILDING, Terms, TrackedInstance, properties_of
from scheduler.hosts.reservations import Reservation, Reservations
from scheduler.hosts.table import HostTable
from scheduler.replay.description import rows_of
from scheduler.replay.row_fleet import RowFleet

#: The moment at which a described fleet begins.
BEGIN: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp()
#: Seconds until a reservation of this world would expire: never.
_FOREVER: Final = float(2**40)
_BUILT: Final = "active"


class VirtualClock:
    """Seconds since the epoch; it stands still until it is set."""

    def __init__(self, now: float) -> None:
        self._now = now

    def __call__(self) -> float:
        return self._now

    def advance(self, now: float) -> None:
        """Go to *now*; ValueError for a time that is over."""
        if now < self._now:
            raise ValueError(f"the clock went back by {self._now - now:g} s")
        self._now = now


class _Built(Consumption):
    """The consumption of a server that is built: it is no I/O operation any more."""

    @functools.cached_property
    def added(self) -> dict[str, int]:
        return {**super().added, "num_io_ops": 0}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One decision: the record, and the reservations of the servers; none when refused."""

    record: DecisionRecord
    servers: Sequence[Reservation] = ()

    @property
    def is_refused(self) -> bool:
        """True when not every server got a host; then none did."""
        return not self.servers

    @property
    def hosts(self) -> list[str]:
        return [each.key[0] for each in self.servers]


class VirtualFleet:
    """The hosts, what is on them, and the driver that decides.

    ``driver`` is the daemon's filter driver, ``host_manager`` its host manager; ``spec_of`` has
    the request that each server was placed with, by its uuid.
    """

    def __init__(self, conf: Any, reader: Any, clock: VirtualClock) -> None:
        """Read the fleet once.  Raises an error that names the option that cannot be used."""
        self.conf = conf
        self.clock = clock
        self.spec_of: dict[str, objects.RequestSpec] = {}
        self._context = oslo_context.RequestContext(overwrite=False)
        self._limits: dict[str, Any] = {
            "service_down_time_seconds": math.inf,
            "most_seconds": math.inf,
        }
        reservations = functools.partial(Reservations, expiry_seconds=_FOREVER)
        manager: HostManager = host_manager_class(conf)(conf, reader, clock, reservations)
        manager.refresh()
        self._keep_services(manager)
        self.driver = FilterScheduler(conf, manager)
        self._take(self.driver.settings)

    @classmethod
    def from_description(cls, conf: Any, text: str) -> Self:
        """Empty hosts as *text* describes them; InvalidRequest if it is no description."""
        return cls(conf, RowFleet(rows_of(text, BEGIN)), VirtualClock(BEGIN))

    @staticmethod
    def _keep_services(manager: HostManager) -> None:
        """Keep services as they are: heartbeats come no more, and none of them is missed."""
        table, now = manager.table, manager.clock()
        for host, last_seen in list(table.last_seen.items()):
            if abs(now - last_seen) > manager.service_down_time_seconds:
                table.set_service(host, {**table.services[host], "forced_down": True}, last_seen)

    def _take(self, settings: Settings) -> None:
        policy = dataclasses.replace(settings.policy, **self._limits)
        self.driver.settings = dataclasses.replace(settings, policy=policy)
        self.host_manager: HostManager = self.driver.host_manager
        self.table: HostTable = self.host_manager.table
        #: The servers that can be taken away again.
        self.reservations: Reservations = self.host_manager.reservations

    @classmethod
    def from_driver(
        cls, driver: FilterScheduler, reservations: Reservations, **limits: float
    ) -> Self:
        """The fleet of a running *driver*, on copies of its *reservations* and their table.

        *limits* are those of its policy, where others than the driver's are to be in force.
        """
        fleet = cls.__new__(cls)
        fleet.spec_of, fleet._context = {}, oslo_context.RequestContext(overwrite=False)
        fleet._limits = limits
        fleet._decide_as(driver, driver.conf, reservations)
        return fleet

    def copy(self, conf: Any = None) -> Self:
        """A fleet of the same state that changes on its own, under *conf* if that is given."""
        twin = copy.copy(self)
        twin.spec_of = dict(self.spec_of)
        reservations = self.reservations.copy(self.table.copy())
        twin._decide_as(self.driver, self.conf if conf is None else conf, reservations)
        return twin

    def _decide_as(self, driver: FilterScheduler, conf: Any, reservations: Reservations) -> None:
        """Have a twin of *driver* decide, which has learnt what that one has."""
        manager = copy.copy(driver.host_manager)
        manager.lock, manager.table = threading.RLock(), reservations.table
        manager.reservations = reservations
        self.conf, manager.clock = conf, VirtualClock(manager.clock())
        self.clock = manager.clock
        self.driver = copy.copy(driver)
        self.driver.host_manager, self.driver.conf = manager, conf
        self.driver.watch = contextlib.nullcontext
        self._take(Settings.from_conf(conf, manager))
        learnt, anew = driver.settings.policy.weighers, self.driver.settings.policy.weighers
        if [type(each) for each in learnt] == [type(each) for each in anew]:
            restore_bounds(anew, bounds_of(learnt))

    def place(
        self,
        spec: objects.RequestSpec,
        uuids: Sequence[str] = (),
        *,
        seed: int = 0,
        with_alternates: bool = False,
        wants_detail: bool = False,
    ) -> Outcome:
        """Decide *spec* for the servers *uuids*, one that it names itself, or nameless ones.

        A server that has its place already is moved: the new one replaces it.  *spec* is not
        changed.  Where it is refused the record says so, *wants_detail* with the reasons of the
        hosts, and nothing has changed.
        """
        request = Request(self._context, spec, tuple(uuids), with_alternates)
        record = DecisionRecord(
            None,
            request.names,
            request.count,
            seed,
            driver=type(self.driver).__name__,
            started_at=self.clock(),
            request=spec,
            wants_detail=wants_detail,
        )
        try:
            decided = self.driver.decide(request, record)
        except (errors.NoValidHost, errors.InvalidRequest) as error:
            record.outcome, record.failure = errors.code_of(error), error_text(error)
            return Outcome(record)
        self.spec_of.update(dict.fromkeys(request.names, spec))
        return Outcome(record, decided.reservations)

    def finish_builds(self, servers: Iterable[Reservation]) -> None:
        """Let those of *servers* run that are still there: no I/O operations of hosts any more."""
        table = self.table
        for each in servers:
            if isinstance(each.amount, _Built) or each not in self.reservations.on(each.key):
                continue
            amount = each.amount
            each.amount = _Built(amount.ram_mb, amount.disk_mb, amount.vcpus, amount.wish)
            if (row := table.rows.get(each.key)) is not None:
                table.add([row], {"num_io_ops": -1})
            if each.placeholder is not None:
                each.placeholder = self._running(each.placeholder)
                table.put_instance(each.key[0], each.placeholder.uuid, each.placeholder)

    def _running(self, instance: TrackedInstance) -> TrackedInstance:
        """*instance* as a running one of its project, with its image."""
        spec = self.spec_of.get(instance.uuid)
        if spec is None:
            return instance._replace(vm_state=_BUILT)
        return instance._replace(
            vm_state=_BUILT,
            project_id=spec.project_id,
            user_id=spec.user_id,
            image_properties=properties_of(spec.image),
        )

    def remove(self, servers: Iterable[Reservation]) -> None:
        """Take *servers* off their hosts; those that have gone with their host are left out."""
        for each in servers:
            if each in self.reservations.on(each.key):
                self.reservations.release(each)
                self.spec_of.pop(each.uuid or "", None)

    def adopt(self, uuid: str, spec: objects.RequestSpec) -> Reservation:
        """Make a removable server of the instance *uuid* that its host has reported.

        *spec* is what it was placed with.  KeyError if it is on no host of this fleet; ValueError
        if it wants cells or devices, which a report does not tell apart.
        """
        host = self.table.host_of_instance[uuid]
        instance: TrackedInstance = self.table.instances[host][uuid]
        key = (host, instance.node or host)
        amount = Consumption.from_request(spec, {}, self.driver.settings.policy.fitting)
        if amount.wish is not None:
            raise ValueError(f"server {uuid} has cells or devices of its own on {host}")
        is_built = instance.vm_state not in (None, BUILDING)
        kept = _Built(amount.ram_mb, amount.disk_mb, amount.vcpus) if is_built else amount
        now = self.clock()
        terms = Terms(host, key[1], None, spec.flavor.id, now, now + _FOREVER)
        server = Reservation(key, kept, terms, uuid, instance)
        self.reservations.take_over(server)
        self.spec_of[uuid] = spec
        return server

    def servers_on(self, host: str) -> list[Reservation]:
        """The servers on all nodes of *host* that can be taken away."""
        keys = [self.table.keys[row] for row in self.table.row_numbers((host,))]
        return [each for key in keys for each in self.reservations.on(key)]

    def set_disabled(self, host: str, *, disabled: bool = True) -> None:
        """Keep new servers off *host*, or let them come again; KeyError if there is none."""
        record = {**self.table.services[host], "disabled": disabled}
        self.table.set_service(host, record, self.table.last_seen[host])

    def take_out(self, host: str) -> list[Reservation]:
        """Take *host* out of the fleet; the servers that were on it, which are gone.

        KeyError if there is no such host.
        """
        rows = list(self.table.rows_of_host[host])
        servers = self.servers_on(host)
        self.remove(servers)
        for uuid in list(self.table.instances.get(host, ())):
            self.table.drop_instance(uuid)
        for row in rows:
            self.table.remove(self.table.keys[row])
        self.table.set_service(host, None, 0.0)
        return servers
