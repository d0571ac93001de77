"""The rows of one compute host: its node and its instances, changed together or not at all.

Every change locks the row of the compute node, changes the instance, and writes the sums over
its instances in one transaction.  Readers find sums and instances in agreement.  Reference page
conductor, section 9.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub.compute.node_report import DEVICES_KEY, NodeReport, Place
from conductor_stub.compute.registration import put_nodes, update_node
from conductor_stub.server_rows import (
    FLAVOR_SIZES,
    add_fault,
    destroy_instance,
    devices_column,
    flavor_column,
    group_of,
    update_if,
)
from scheduler import errors, numa, objects
from scheduler.db import instances, rows
from scheduler.db.database import Database
from scheduler.db.tables import compute_nodes, instance_extra, instance_groups

LOG = logging.getLogger(__name__)

Result = TypeVar("Result")
Arrived = tuple[objects.Instance, str | None]
"""An instance that has come to a host, and where it was before."""

BUILDING = "building"
SPAWNING = "spawning"
WAITING_TASKS = ("scheduling", None)
"""The task states in which a building instance waits for a host to take it."""
RUNNING = 1
"""The power state of a guest that runs."""
FAILED_BUILDS = "failed_builds"

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
    devices: objects.InstancePCIRequests | None = None
    vm_state: str | None = None


@dataclasses.dataclass
class _Node:
    """The locked row of the node, as far as changes need it."""

    id: int
    uuid: str
    failed_builds: int


class HostRows:
    """Claims, releases and reports of one host, with the clock of its *report*."""

    def __init__(self, database: Database, report: NodeReport) -> None:
        self.host = report.host
        self._database = database
        self._report = report

    def get(self, uuid: str) -> objects.Instance:
        """The instance as it is in the database; raises InstanceNotFound."""
        with self._database.read() as conn:
            return instances.get(conn, uuid)

    # -- what a build does ------------------------------------------------------------------

    def claim(self, uuid: str, limits: dict[str, Any]) -> bool:
        """Take the waiting instance, which then counts as used here and is being spawned.

        False when it does not wait (any more): it is built already, or somewhere else.  Raises
        ``InstanceNotFound``, or ``ComputeResourcesUnavailable`` when it does not fit.
        """

        def change(conn: Connection, node: _Node) -> bool:
            instance = instances.get(conn, uuid)
            if not _waits(instance):
                return False
            place = self._report.place(self._present(conn), instance, limits)
            _check_group(conn, uuid, self.host)
            taken = update_if(
                conn,
                uuid,
                {"task_state": WAITING_TASKS, "host": None},
                host=self.host,
                node=self.host,
                compute_id=node.id,
                launched_on=self.host,
                vm_state=BUILDING,
                task_state=SPAWNING,
            )
            if taken:
                _settle(conn, instance, place)
            return taken

        return self._locked(change)

    def activate(self, uuid: str) -> objects.Instance | None:
        """The build is done: the instance runs.  None when it was deleted or taken meanwhile."""

        def change(conn: Connection, node: _Node) -> objects.Instance | None:
            if _find(conn, uuid) is None or not update_if(
                conn,
                uuid,
                {"task_state": SPAWNING, "host": self.host},
                vm_state="active",
                task_state=None,
                power_state=RUNNING,
                launched_at=self._report.clock(),
            ):
                return None
            node.failed_builds = 0
            return instances.get(conn, uuid)

        return self._locked(change)

    def give_up(self, uuid: str, error: Exception | None = None) -> objects.Instance | None:
        """Let the instance of a failed build wait for another host, or set it to ERROR.

        None when it is not ours.
        """

        def change(conn: Connection, node: _Node) -> objects.Instance | None:
            instance = _find(conn, uuid)
            if instance is None or not _unfinished(instance, self.host):
                return None
            if error is None:
                instances.update(conn, uuid, **_NO_HOST, task_state="scheduling")
            else:
                instances.update(conn, uuid, **_NO_HOST, task_state=None, vm_state="error")
                add_fault(conn, uuid, error, self.host)
            # Another host gives cells and devices of its own; what pages they have stays settled.
            instance.numa_topology = _unplaced(instance.numa_topology)
            _settle(conn, instance, Place())
            node.failed_builds += 1
            return instances.get(conn, uuid)

        return self._locked(change)

    # -- what a move does ---------------------------------------------------------------------

    def take_over(self, uuid: str, arrival: Arrival) -> Arrived | None:
        """Take an instance that is on its way from another host, or grows on this one.

        None when it is not on its way (any more).  Raises ``InstanceNotFound``, or
        ``ComputeResourcesUnavailable`` when it does not fit.
        """

        def change(conn: Connection, node: _Node) -> Arrived | None:
            instance = instances.get(conn, uuid)
            if instance.task_state != arrival.task_state:
                return None
            others = [each for each in self._present(conn) if each.uuid != uuid]
            wanted = instance.copy()
            if arrival.flavor is not None:
                _resize(conn, wanted, arrival.flavor, arrival)
            wanted.numa_topology = _unplaced(wanted.numa_topology)
            place = self._report.place(others, wanted, arrival.limits)
            _check_group(conn, uuid, self.host)
            _settle(conn, wanted, place)
            instances.update(
                conn,
                uuid,
                host=self.host,
                node=self.host,
                compute_id=node.id,
                vm_state=arrival.vm_state or instance.vm_state,
                task_state=None,
                power_state=RUNNING,
                launched_at=self._report.clock(),
            )
            return instances.get(conn, uuid), instance.host

        return self._locked(change)

    def turn_away(self, uuid: str, task_state: str, error: Exception) -> None:
        """An instance on its way does not come here: it stays as it is, and *error* is noted."""

        def change(conn: Connection, _node: _Node) -> None:
            if _find(conn, uuid) is None:
                return
            if update_if(conn, uuid, {"task_state": task_state}, task_state=None):
                add_fault(conn, uuid, error, self.host)

        self._locked(change)

    # -- what else happens to a host ---------------------------------------------------------

    def destroy(self, uuid: str) -> objects.Instance | None:
        """Delete the instance, gone or not; returns it when it is on another host."""

        def change(conn: Connection, _node: _Node) -> objects.Instance | None:
            instance = _find(conn, uuid)
            if instance is not None and instance.host not in (self.host, None):
                return instance
            if instance is not None:
                ended = {
                    "vm_state": "deleted",
                    "task_state": None,
                    "terminated_at": self._report.clock(),
                }
                instances.update(conn, uuid, **ended)
                destroy_instance(conn, uuid)
            return None

        return self._locked(change)

    def audit(self) -> str:
        """Write everything about the host anew, as its periodic report; its node's uuid."""
        return self._locked(lambda _conn, node: node.uuid)

    def present(self) -> Sequence[objects.Instance]:
        """The instances that are on the host."""
        with self._database.read() as conn:
            return instances.list_all(conn, host=self.host)

    def new_row(self, conn: Connection) -> dict[str, Any]:
        """The whole row of the node, with the sums of the instances it has now."""
        return self._report.columns(self._present(conn), 0)

    # -- the transaction ----------------------------------------------------------------------

    def _locked(self, change: Callable[[Connection, _Node], Result]) -> Result:
        """Run *change* in a transaction in which nobody else changes this host."""

        def write(conn: Connection) -> Result:
            node = self._lock(conn)
            result = change(conn, node)
            columns = self._report.columns(self._present(conn), node.failed_builds)
            update_node(conn, node.id, columns, self._report.clock())
            return result

        return self._database.write_retrying(write)

    def _lock(self, conn: Connection) -> _Node:
        # SQLite needs no lock on rows: its write transactions exclude each other.
        key = {"host": self.host, "hypervisor_hostname": self.host, "deleted": 0}
        query = sa.select(compute_nodes).filter_by(**key).with_for_update()
        while (found := conn.execute(query).first()) is None:
            LOG.warning("Compute node %s was deleted while its host runs; added again", self.host)
            put_nodes(conn, [self.new_row(conn)])
        failed = json.loads(found.stats or "{}").get(FAILED_BUILDS) or "0"
        return _Node(found.id, found.uuid, int(failed) if failed.isdecimal() else 0)

    def _present(self, conn: Connection) -> Sequence[objects.Instance]:
        return instances.list_all(conn, host=self.host, parts=self._report.needs_places)


def _check_group(conn: Connection, uuid: str, host: str) -> None:
    """Raise ``ComputeResourcesUnavailable`` if *uuid* on *host* breaks its group's policy.

    The group stays locked until the transaction ends, so two members cannot pass side by side.
    Soft policies hold always.
    """
    group = group_of(conn, uuid)
    policies = set(group.policies or ()) if group else set()
    if not group or not {"affinity", "anti-affinity"} & policies:
        return
    same = instance_groups.c.id == group.id
    conn.execute(sa.select(instance_groups.c.id).where(same).with_for_update())
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


def _resize(
    conn: Connection, wanted: objects.Instance, flavor: objects.Flavor, arrival: Arrival
) -> None:
    """Give the instance *wanted*, and its rows, all that *flavor* brings."""
    sizes = {name: getattr(flavor, name) for name in FLAVOR_SIZES}
    for name, value in sizes.items():
        setattr(wanted, name, value)
    wanted.flavor, wanted.numa_topology = flavor, arrival.topology
    wanted.pci_requests = arrival.devices
    instances.update(conn, wanted.uuid, instance_type_id=flavor.id, **sizes)
    columns = {"flavor": flavor_column(flavor), "pci_requests": devices_column(arrival.devices)}
    mine = instance_extra.c.instance_uuid == wanted.uuid
    rows.update(conn, instance_extra, mine, **columns)


def _settle(conn: Connection, instance: objects.Instance, place: Place) -> None:
    """Note the cells and devices of *instance*: those of *place*, else the cells it asks for."""
    topology = place.topology or instance.numa_topology
    mine = instance_extra.c.instance_uuid == instance.uuid
    rows.update(conn, instance_extra, mine, numa_topology=topology)
    if place.devices is not None or instance.system_metadata.get(DEVICES_KEY):
        instances.set_system_metadata(conn, instance.uuid, DEVICES_KEY, place.devices)


def _unplaced(topology: objects.InstanceNUMATopology | None) -> objects.InstanceNUMATopology | None:
    """The cells of a guest that no host has given it yet."""
    if not topology:
        return topology
    return numa.GuestTopology.from_object(topology).unplaced().to_object()


def _find(conn: Connection, uuid: str) -> objects.Instance | None:
    return next(iter(instances.list_all(conn, uuids=[uuid])), None)


def _waits(instance: objects.Instance) -> bool:
    is_free = instance.host is None and instance.task_state in WAITING_TASKS
    return is_free and instance.vm_state == BUILDING


def _unfinished(instance: objects.Instance, host: str) -> bool:
    """True when the build of *instance* is going on at *host*, or waits for a host."""
    is_spawned_here = instance.host == host and instance.task_state == SPAWNING
    return _waits(instance) or (is_spawned_here and instance.vm_state == BUILDING)
