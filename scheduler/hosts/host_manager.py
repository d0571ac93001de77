"""The host manager: the host table, kept fresh, and the updates that arrive by RPC.

Reference page scheduling, section 5.  The database is the truth; what aggregates and instances
senders broadcast is taken at once, so that it counts even for a driver that reads on a timer, and
the next read confirms or corrects it.
"""

import contextlib
import datetime
import gc
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from oslo_log import log as logging

from scheduler import concurrency, errors, semantics
from scheduler.db.cells import CellHealth
from scheduler.hosts import rows
from scheduler.hosts.host_state import HostState
from scheduler.hosts.instances import recorded, tracked
from scheduler.hosts.refresh import Listener, ReadCost, SharedRun, SteadyClock, is_due
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

#: From so many hosts on the garbage collector is spared them.
MANY_HOSTS = 1000
#: Its thresholds for young, older and oldest objects.  Python's own, 700, 10, 10, take a tenth of a
#: call (10,000 hosts, 8 callers, claims in MariaDB); with 50,000, 10, 10 memory grew for minutes.
THRESHOLDS = 50_000, 2, 2


class _ReadFailed(Exception):
    """Failure of a read for the cause that it was raised from, which was logged."""


class HostManager:
    """Owner of the host table of one worker.

    ``lock`` is held while the table is changed or decided on; a decision under it is atomic.
    *reader*, with the methods of a ``CellsReader``, brings the rows; *clock* gives seconds since
    the epoch; *reservations* keeps what was consumed on the table it is made with.
    """

    KNOWS_BARE_METAL = False

    def __init__(
        self,
        conf: Any,
        reader: Any,
        clock: Callable[[], float] = time.time,
        reservations: Callable[[HostTable], Reservations] = Reservations,
    ) -> None:
        self.table = HostTable()
        self.reservations = reservations(self.table)
        self.lock = threading.RLock()
        self.clock = clock
        self._check_clock: Callable[[], None] = lambda: None
        self.read_at: float | None = None
        self._take_intervals(conf)
        self._reader = reader
        self._semantics = semantics.from_conf(conf)
        self._updater = rows.TableUpdater(
            self.reservations,
            semantics.Ratios.from_conf(conf),
            conf.scheduler.cell_uuid,
            self._semantics,
            knows_bare_metal=self.KNOWS_BARE_METAL,
        )
        self._shared = SharedRun(self._read, gather=concurrency.let_others_catch_up)
        self._full_at: float | None = None
        #: uuids of the cells whose hosts are left out since the latest read.
        self.cells_left_out: tuple[str, ...] = ()
        #: True when the latest read failed: decisions are on the state before it.
        self.is_failing = False
        self.read_listeners: list[Listener] = []

    def _take_intervals(self, conf: Any) -> None:
        self._full_interval_seconds = conf.scheduler.full_refresh_interval_seconds
        self._max_age_seconds = conf.scheduler.max_state_age_seconds
        self.service_down_time_seconds = conf.service_down_time
        fresh_seconds = conf.scheduler.state_fresh_seconds
        if fresh_seconds is None:
            fresh_seconds = int(conf.scheduler.claims == "placement")
        self.state_fresh_seconds: int = fresh_seconds

    @classmethod
    def option_of_filters(cls, conf: Any) -> str:
        """Name of the option of ``[filter_scheduler]`` that lists the filters for these hosts."""
        is_metal = cls.KNOWS_BARE_METAL and conf.filter_scheduler.use_baremetal_filters
        return "baremetal_enabled_filters" if is_metal else "enabled_filters"

    def keep_time_by(self, clock: SteadyClock) -> None:
        """Have *clock* for the time, and check the machine's before each read."""
        self.clock, self._check_clock = clock, clock.check

    # --- state ---------------------------------------------------------------------------

    @property
    def state_age_seconds(self) -> float | None:
        """Age of the state in the table; None before the first read."""
        return None if self.read_at is None else max(0.0, self.clock() - self.read_at)

    @property
    def aggregates(self) -> list[Any]:
        """Every aggregate that is known; the caller holds the lock."""
        return list(self._updater.aggregates.values())

    def refresh(self, arrived_at: float | None = None) -> None:
        """Bring the table to a state that is read after *arrived_at*, or after this call.

        *arrived_at* is on the monotonic clock.  One read serves all requests that had arrived
        when it began.  While reads fail, whatever the cause, the last state serves up to
        ``max_state_age_seconds``; then StateUnavailable is raised.
        """
        try:
            self._shared(arrived_at)
        except _ReadFailed:
            self.require_state()

    def is_read_since(self, arrived_at: float | None) -> bool:
        """True when the state was read after a request arrived, never after None."""
        return arrived_at is not None and self._shared.good_since > arrived_at

    def read_beside(self) -> None:
        """Read what no request waits for, once the first read is done; called twice a second.

        That is the state, too, where a request need not wait for its own read, and where claims
        may be lost.  The lock is not held while rows are on their way.
        """
        with contextlib.suppress(errors.StateUnavailable):
            if self.state_fresh_seconds and self.read_at is not None:
                self.refresh(time.monotonic() - self.state_fresh_seconds / 4)
            if self.reservations.needs_read():
                self.refresh()
        several = self._reader.read_beside(_naive_utc(self.clock()))
        with self.lock:
            for changes in several:
                self._updater.hear(changes)

    def refresh_everything(self) -> None:
        """Refresh with a full read, which repairs whatever the reads of changes missed."""
        self._shared.wait()  # a full read under way may have begun too early
        self._full_at = None
        self.refresh()

    def reconfigure(self, conf: Any, others: Callable[[], None]) -> None:
        """Put *conf* in force between two decisions, together with what *others* puts in force.

        Then everything is read again, as *conf* may want more of it.
        """
        self._reader.read_more(conf)
        with self.lock:
            self._take_intervals(conf)
            self._updater.ratios = semantics.Ratios.from_conf(conf)
            rows.apply_ratios(self.table, self._updater.ratios)
            others()
        with contextlib.suppress(errors.StateUnavailable):
            self.refresh_everything()

    def cell_health(self) -> list[CellHealth]:
        """Health of each cell; empty for a fleet that is not divided into cells."""
        return list(self._reader.cell_health())

    def hosts_up(self, topic: str) -> list[str]:
        """Hosts of the enabled compute services of *topic* that live, as of now.

        Reference page scheduling, sections 1.1 and 10.
        """
        self.refresh()
        now, tolerance = self.clock(), self.service_down_time_seconds
        with self.lock:
            table = self.table
            return [
                host
                for host, service in table.services.items()
                if service["topic"] == topic
                and not (service["disabled"] or service["forced_down"])
                and abs(now - table.last_seen[host]) <= tolerance
                and not table.cells.get(self._updater.cell_of_host.get(host, ""))
            ]

    def state_of(self, host: str, node: str | None = None) -> HostState:
        """*host* by its compute node *node*, or the first, as last read; ComputeHostNotFound."""
        with self.lock:
            value, known = self.table.value, self.table.row_numbers((host,))
            found = [row for row in known if node in (None, value(row, "nodename"))]
            row = min(found, key=lambda row: value(row, "node_id"), default=None)
            if row is None:
                raise errors.ComputeHostNotFound(host=host if node is None else f"{host} ({node})")
            return HostState(self.table, row, None)

    def update_service_capabilities(
        self, service_name: str, host: str, capabilities: Mapping[str, Any]
    ) -> None:
        """Take what a compute node of Havana's kind says of itself (section 13.1)."""
        if service_name != "compute":
            LOG.debug("Capabilities of the service %s on %s are not needed", service_name, host)
            return
        said = MappingProxyType({**capabilities, "timestamp": _naive_utc(self.clock())})
        with self.lock:
            self.table.capabilities[host, capabilities.get("hypervisor_hostname")] = said

    def require_state(self) -> None:
        """Raise StateUnavailable if nothing was read yet, or if reads fail for too long."""
        age = self.state_age_seconds
        if age is None:
            raise errors.StateUnavailable(reason="it could not be read")
        if self.is_failing and age > self._max_age_seconds:
            raise errors.StateUnavailable(reason=f"the last state read is {age:.0f} s old")

    def _read(self) -> None:
        """Read, and note whether that failed; requests that an earlier read serves do not know."""
        self._check_clock()
        started, cost = time.perf_counter(), ReadCost(failed=True)
        try:
            self._read_and_apply(self.clock(), cost)
            cost.failed = False
        except Exception as error:
            if not self.is_failing:
                fault = None if isinstance(error, errors.ConfigurationError) else error
                text = "The state of the compute hosts cannot be read: %s"
                LOG.error(text, error, exc_info=fault)
            self.is_failing = True
            raise _ReadFailed from error
        finally:
            cost.seconds = time.perf_counter() - started
            for listener in self.read_listeners:
                listener(cost)
        if self.is_failing:
            LOG.info("The state of the compute hosts is being read again.")
        self.is_failing = False

    def _read_and_apply(self, began: float, cost: ReadCost) -> None:
        full = self._full_at is None or is_due(self._full_at, self._full_interval_seconds, began)
        self.reservations.read_claims()
        several = self._reader.read(_naive_utc(began), full=full)
        with self.lock:
            for changes in several:
                self._updater.apply(changes, began, cost)
            self.read_at = began
            health = self.cell_health()
            self.cells_left_out = tuple(each.uuid for each in health if each.is_left_out)
        if full:
            self._full_at = began
            freeze_objects(self.table)

    # --- aggregates and instances, by RPC ------------------------------------------------

    def update_aggregates(self, aggregates: Iterable[Any]) -> None:
        """Take *aggregates*, each replacing the one of its id."""
        with self.lock:
            self._updater.set_aggregates([*self.aggregates, *aggregates])

    def delete_aggregate(self, aggregate: Any) -> None:
        """Forget the aggregate of this id; an unknown one is ignored."""
        with self.lock:
            left = [each for each in self.aggregates if each.id != aggregate.id]
            self._updater.set_aggregates(left)

    def update_instance_info(self, context: Any, host_name: str, instance_info: Any) -> None:
        """Take the instances that *host_name* reports as running on it."""
        with self.lock:
            for instance in instance_info:
                known = self.table.instances.get(host_name, {}).get(instance.uuid)
                if known is not None and not instance.is_set("system_metadata"):
                    properties = known.image_properties
                else:
                    properties = recorded(instance.system_metadata)
                found = tracked(instance, host_name, properties)
                self.table.put_instance(host_name, instance.uuid, found)

    def delete_instance_info(self, context: Any, host_name: str, instance_uuid: str) -> None:
        """Forget an instance that was deleted on *host_name*, unless it has moved on since."""
        with self.lock:
            if self.table.host_of_instance.get(instance_uuid) == host_name:
                self.table.drop_instance(instance_uuid)

    def sync_instance_info(self, context: Any, host_name: str, instance_uuids: list[str]) -> None:
        """Compare the instances that *host_name* says it has with those known here.

        Reservations, of which it has not heard, do not count.
        """

        def agree() -> bool:
            with self.lock:
                known = self.table.instances.get(host_name, {})
                built = {uuid for uuid, each in known.items() if each.vm_state is not None}
            return built <= set(instance_uuids) <= known.keys()

        if agree():
            LOG.debug("Successfully synced instances from host '%s'.", host_name)
            return
        self.refresh()
        if not agree():
            LOG.info(
                "The instance sync for host '%s' did not match. Re-created its InstanceList.",
                host_name,
            )
            self._full_at = None  # the next read is a full one


class IronicHostManager(HostManager):
    """Manager of bare-metal and ordinary nodes, perhaps with filters of its own.

    Nodes whose ``hypervisor_type`` is ``ironic`` are read and consumed as wholes and show no
    instances; all others are ordinary (reference page scheduling, section 5.8).
    """

    KNOWS_BARE_METAL = True


def _naive_utc(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)


def freeze_objects(table: HostTable) -> None:
    """Collect garbage once more, and spare the collector all that is left until next time.

    To go through 10,000 hosts takes it 60 ms, in the middle of some request, and finds nothing.
    """
    if len(table) >= MANY_HOSTS:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
