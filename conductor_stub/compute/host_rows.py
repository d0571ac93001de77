"""The rows of one compute host: its node and its instances, changed together or not at all.

Every change locks the row of the compute node, changes the instance, and writes the sums over
its instances in one transaction.  Readers find sums and instances in agreement.  Reference page
conductor, section 9.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub.compute.layout import DEVICES_KEY, Place
from conductor_stub.compute.node_report import NodeReport
from conductor_stub.planning import policies_of
from scheduler import errors, numa, objects
from scheduler.db import compute_nodes, groups, instances, rows
from scheduler.db.database import Database
from scheduler.db.tables import instance_extra

LOG = logging.getLogger(__name__)


def check(conn: Connection, uuid: str, host: str) -> None:
    """Raise ``ComputeResourcesUnavailable`` if *uuid* on *host* breaks its group's policy.

    The group stays locked until the transaction ends, so two members cannot pass side by side.
    Soft policies hold always.
    """
    try:
        group = groups.by_instance(conn, uuid)
    except errors.InstanceGroupNotFound:
        return
    policies = policies_of(group)
    if not {"affinity", "anti-affinity"} & set(policies):
        return
    groups.lock(conn, group.uuid)
    others = [member for member in group.members if member != uuid]
    present = instances.list_all(conn, uuids=others, parts=False)
    hosts = [each.host for each in present if each.host]
    if "anti-affinity" in policies:
        allowed = int((group.rules or {}).get("max_server_per_host", 1))
        if hosts.count(host) >= allowed:
            raise errors.ComputeResourcesUnavailable(
                reason=f"{hosts.count(host)} members of anti-affinity group {group.name} are here"
            )
    if "affinity" in policies and set(hosts) - {host}:
        raise errors.ComputeResourcesUnavailable(
            reason=f"members of affinity group {group.name} are on another host"
        )


def _set_flavor(conn: Connection, uuid: str, flavor: objects.Flavor) -> None:
    """Give the instance another flavor: its sizes too, which are columns of their own."""
    sizes = {name: getattr(flavor, name) for name in instances.FLAVOR_SIZES}
    instances.update(conn, uuid, instance_type_id=flavor.id, **sizes)
    _set_extra(conn, uuid, flavor=instances.flavor_column(flavor))


def _set_extra(conn: Connection, uuid: str, **values: Any) -> None:
    """Set columns of ``instance_extra``."""
    rows.update(conn, instance_extra, instance_extra.c.instance_uuid == uuid, **values)


Result = TypeVar("Result")

BUILDING = "building"
SPAWNING = "spawning"
WAITING_TASKS = ("scheduling", None)
"""The task states in which a building instance waits for a host to take it."""
RUNNING = 1
"""The power state of a guest that runs."""

_NO_HOST: Mapping[str, Any] = {"host": None, "node": None, "compute_id": None}


@dataclasses.dataclass(frozen=True)
class Arrival:
    """The arrival of an instance on a host: its task before, and its state there.

    Without *flavor* it keeps its own, with *vm_state* None its state.  *limits* are what the
    scheduler's filters noted for the host.
    """

    task_state: str
    limits: dict[str, Any]
    flavor: objects.Flavor | None = None
    topology: objects.InstanceNUMATopology | None = None
    vm_state: str | None = None

    def resized(self, instance: objects.Instance) -> objects.Instance:
        """*instance* as it is to be, with no cells given out yet."""
        wanted: objects.Instance = instance.copy()
        if self.flavor is not None:
            wanted.flavor = self.flavor
            for name in instances.FLAVOR_SIZES:
                setattr(wanted, name, getattr(self.flavor, name))
        topology = instance.numa_topology if self.flavor is None else self.topology
        if topology:
            topology = numa.GuestTopology.from_object(topology).unplaced().to_object()
        wanted.numa_topology = topology
        return wanted


class Arrived(NamedTuple):
    """An instance that has come to a host, and where it was before."""

    instance: objects.Instance
    came_from: str | None


class HostRows:
    """Claims, releases and reports of one host; *clock* gives naive UTC without fractions."""

    def __init__(
        self, database: Database, report: NodeReport, clock: Callable[[], datetime.datetime]
    ) -> None:
        self.host = report.host
        self._database = database
        self._report = report
        self._clock = clock

    def node_uuid(self) -> str:
        """The uuid of the host's node."""
        return str(self._locked(lambda _conn, node: node.uuid))

    def has(self, uuid: str) -> bool:
        """True when the instance is on this host."""
        with self._database.read() as conn:
            return uuid in instances.uuids_on_host(conn, self.host)

    # -- what a build does ------------------------------------------------------------------

    def claim(self, uuid: str, limits: dict[str, Any]) -> bool:
        """Take the waiting instance, which then counts as used here and is being spawned.

        False when it does not wait (any more): it is built already, or somewhere else.  Raises
        ``InstanceNotFound``, or ``ComputeResourcesUnavailable`` when it does not fit.
        """

        def change(conn: Connection, node: objects.ComputeNode) -> bool:
            instance = instances.get(conn, uuid)
            if not _waits(instance):
                return False
            place = self._report.place(self._present(conn), instance, limits)
            check(conn, uuid, self.host)
            taken = instances.update(
                conn,
                uuid,
                expected_task_state=WAITING_TASKS,
                expected_host=None,
                host=self.host,
                node=self._report.node,
                compute_id=node.id,
                launched_on=self.host,
                vm_state=BUILDING,
                task_state=SPAWNING,
            )
            if taken:
                _move_in(conn, uuid, place)
            self._write_usage(conn, node, _failed_builds(node))
            return taken

        return self._locked(change)

    def activate(self, uuid: str) -> objects.Instance | None:
        """The build is done: the instance runs.  None when it was deleted or taken meanwhile."""

        def change(conn: Connection, node: objects.ComputeNode) -> objects.Instance | None:
            instance = _find(conn, uuid)
            ours = instance is not None and instances.update(
                conn,
                uuid,
                expected_task_state=SPAWNING,
                expected_host=self.host,
                vm_state="active",
                task_state=None,
                power_state=RUNNING,
                launched_at=self._clock(),
            )
            self._write_usage(conn, node, 0 if ours else _failed_builds(node))
            return instances.get(conn, uuid) if ours else None

        return self._locked(change)

    def release(self, uuid: str) -> objects.Instance | None:
        """Let the instance of a failed build wait for another host; None when it is not ours."""
        return self._give_up(uuid, None)

    def fail(self, uuid: str, error: Exception) -> objects.Instance | None:
        """Set the instance to ERROR with *error* as its fault; None as for :meth:`release`."""
        return self._give_up(uuid, errors.Fault.from_error(error))

    def _give_up(self, uuid: str, fault: errors.Fault | None) -> objects.Instance | None:
        def change(conn: Connection, node: objects.ComputeNode) -> objects.Instance | None:
            instance = _find(conn, uuid)
            if instance is None or not _unfinished(instance, self.host):
                self._write_usage(conn, node, _failed_builds(node))
                return None
            if fault is None:
                instances.update(conn, uuid, **_NO_HOST, task_state="scheduling")
            else:
                instances.update(conn, uuid, **_NO_HOST, task_state=None, vm_state="error")
                instances.add_fault(conn, uuid, fault.code, fault.message, fault.details, self.host)
            _move_out(conn, instance)
            self._write_usage(conn, node, _failed_builds(node) + 1)
            return instances.get(conn, uuid)

        return self._locked(change)

    # -- what a move does ---------------------------------------------------------------------

    def take_over(self, uuid: str, arrival: Arrival) -> Arrived | None:
        """Take an instance that is on its way from another host, or grows on this one.

        None when it is not on its way (any more).  Raises ``InstanceNotFound``, or
        ``ComputeResourcesUnavailable`` when it does not fit.
        """

        def change(conn: Connection, node: objects.ComputeNode) -> Arrived | None:
            instance = instances.get(conn, uuid)
            if instance.task_state != arrival.task_state:
                return None
            others = [each for each in self._present(conn) if each.uuid != uuid]
            place = self._report.place(others, arrival.resized(instance), arrival.limits)
            check(conn, uuid, self.host)
            if arrival.flavor is not None:
                _set_flavor(conn, uuid, arrival.flavor)
            _set_extra(conn, uuid, numa_topology=place.topology)
            if place.devices is not None or instance.system_metadata.get(DEVICES_KEY):
                instances.set_system_metadata(conn, uuid, DEVICES_KEY, place.devices)
            instances.update(
                conn,
                uuid,
                host=self.host,
                node=self._report.node,
                compute_id=node.id,
                vm_state=arrival.vm_state or instance.vm_state,
                task_state=None,
                power_state=RUNNING,
                launched_at=self._clock(),
            )
            self._write_usage(conn, node, _failed_builds(node))
            return Arrived(instances.get(conn, uuid), instance.host)

        return self._locked(change)

    def turn_away(self, uuid: str, task_state: str, error: Exception) -> None:
        """An instance on its way does not come here: it stays as it is, and *error* is noted."""
        fault = errors.Fault.from_error(error)

        def change(conn: Connection, node: objects.ComputeNode) -> None:  # noqa: ARG001
            if _find(conn, uuid) is None:
                return
            if instances.update(conn, uuid, expected_task_state=task_state, task_state=None):
                instances.add_fault(conn, uuid, fault.code, fault.message, fault.details, self.host)

        self._locked(change)

    # -- what else happens to a host ---------------------------------------------------------

    def destroy(self, uuid: str) -> objects.Instance | None:
        """Delete the instance, gone or not; returns it when it is on another host."""

        def change(conn: Connection, node: objects.ComputeNode) -> objects.Instance | None:
            instance = _find(conn, uuid)
            if instance is not None and instance.host not in (self.host, None):
                return instance
            if instance is not None:
                ended = {"vm_state": "deleted", "task_state": None, "terminated_at": self._clock()}
                instances.update(conn, uuid, **ended)
                instances.destroy(conn, uuid)
            self._write_usage(conn, node, _failed_builds(node))
            return None

        return self._locked(change)

    def audit(self) -> None:
        """Write everything about the host anew, as its periodic report."""

        def change(conn: Connection, node: objects.ComputeNode) -> None:
            columns = self._report.everything(self._present(conn), _failed_builds(node))
            compute_nodes.update_usage(conn, node.id, columns, self._clock())

        self._locked(change)

    def interrupted(self) -> list[str]:
        """The uuids of the instances whose build on this host was cut off by its end."""
        with self._database.read() as conn:
            present = instances.list_all(conn, host=self.host, vm_state=BUILDING, parts=False)
        return [each.uuid for each in present]

    def present(self) -> Sequence[objects.Instance]:
        """The instances that are on the host."""
        with self._database.read() as conn:
            return instances.list_all(conn, host=self.host)

    def uuids(self) -> list[str]:
        """The uuids of the instances that are on the host."""
        with self._database.read() as conn:
            return instances.uuids_on_host(conn, self.host)

    def new_row(self, conn: Connection) -> dict[str, Any]:
        """The whole row of the node, with the sums of the instances it has now."""
        return self._report.everything(self._present(conn), 0)

    # -- the transaction ----------------------------------------------------------------------

    def _locked(self, change: Callable[[Connection, objects.ComputeNode], Result]) -> Result:
        """Run *change* in a transaction in which nobody else changes this host."""
        return self._database.write_retrying(lambda conn: change(conn, self._lock(conn)))

    def _lock(self, conn: Connection) -> objects.ComputeNode:
        node = self._report.node
        try:
            return compute_nodes.get(conn, self.host, node, for_update=True)
        except errors.ComputeHostNotFound:
            LOG.warning("Compute node %s was deleted while its host runs; added again", node)
            compute_nodes.upsert_many(conn, [self.new_row(conn)])
            return compute_nodes.get(conn, self.host, node, for_update=True)

    def _write_usage(self, conn: Connection, node: objects.ComputeNode, failed_builds: int) -> None:
        usage = self._report.usage(self._present(conn), failed_builds)
        compute_nodes.update_usage(conn, node.id, usage, self._clock())

    def _present(self, conn: Connection) -> Sequence[objects.Instance]:
        kind = self._report.kind
        needs_places = bool(kind.numa_cells or kind.pci_pools)
        return instances.list_all(conn, host=self.host, parts=needs_places)


def _move_in(conn: Connection, uuid: str, place: Place) -> None:
    if place.topology is not None:
        _set_extra(conn, uuid, numa_topology=place.topology)
    if place.devices is not None:
        instances.set_system_metadata(conn, uuid, DEVICES_KEY, place.devices)


def _move_out(conn: Connection, instance: objects.Instance) -> None:
    """Another host gives cells and devices of its own; what pages they have stays settled."""
    if instance.numa_topology:
        guest = numa.GuestTopology.from_object(instance.numa_topology).unplaced()
        _set_extra(conn, instance.uuid, numa_topology=guest.to_object())
    if instance.system_metadata.get(DEVICES_KEY):
        instances.set_system_metadata(conn, instance.uuid, DEVICES_KEY, None)


def _find(conn: Connection, uuid: str) -> objects.Instance | None:
    try:
        return instances.get(conn, uuid)
    except errors.InstanceNotFound:
        LOG.debug("Instance %s is gone", uuid)
        return None


def _waits(instance: objects.Instance) -> bool:
    is_free = instance.host is None and instance.task_state in WAITING_TASKS
    return is_free and instance.vm_state == BUILDING


def _unfinished(instance: objects.Instance, host: str) -> bool:
    """True when the build of *instance* is going on at *host*, or waits for a host."""
    is_spawned_here = instance.host == host and instance.task_state == SPAWNING
    return _waits(instance) or (is_spawned_here and instance.vm_state == BUILDING)


def _failed_builds(node: objects.ComputeNode) -> int:
    count = (node.stats or {}).get("failed_builds") or "0"
    return int(count) if count.isdecimal() else 0
