"""Servers as their users see them: reading, watching and deleting them.

Reference page conductor, sections 4 (step 4), 8.2 and 11.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub import block_devices, build_requests, mappings
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.conductor_rpcapi import TOPIC
from conductor_stub.stores import ATTEMPTS_KEY
from scheduler import errors, objects
from scheduler.db import fleet_rows, instances, rows
from scheduler.db.database import Database
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

ACTIVE = "active"
ERROR = "error"


@dataclass(frozen=True)
class Server:
    """One server; ``attempts`` is 0 until a conductor has taken it, ``fault`` why it failed."""

    instance: objects.Instance
    attempts: int
    fault: instances.Fault | None

    @property
    def uuid(self) -> str:
        """The server's uuid."""
        return str(self.instance.uuid)

    @property
    def name(self) -> str:
        """The name that its user gave it."""
        return str(self.instance.display_name)

    @property
    def state(self) -> str:
        """``ACTIVE``, ``ERROR``, or ``BUILDING`` with the task in hand."""
        state = str(self.instance.vm_state).upper()
        task = self.instance.task_state
        return f"{state} ({task})" if task else state

    @property
    def is_active(self) -> bool:
        """True when it runs."""
        return self.instance.vm_state == ACTIVE

    @property
    def is_settled(self) -> bool:
        """True when its build has ended, good or bad."""
        return self.instance.vm_state in (ACTIVE, ERROR)


def read(conn: Connection, uuids: Sequence[str] | None = None) -> list[Server]:
    """The servers of those uuids, or all; those without rows yet come last."""
    found = instances.list_all(conn, uuids=uuids)
    found += _only_asked_for(conn, {each.uuid for each in found}, uuids)
    faults = instances.latest_faults(conn, [each.uuid for each in found])
    return [
        Server(each, int(each.system_metadata.get(ATTEMPTS_KEY) or 0), faults.get(each.uuid))
        for each in found
    ]


def _only_asked_for(
    conn: Connection, known: set[str], uuids: Sequence[str] | None
) -> list[objects.Instance]:
    """Servers whose rows their conductor has yet to make (reference page conductor, 11)."""
    if uuids is not None and known.issuperset(uuids):
        return []
    asked_for = [each.instance for each in build_requests.list_all(conn)]
    wanted = None if uuids is None else set(uuids)
    return [
        each
        for each in asked_for
        if each.uuid not in known and (wanted is None or each.uuid in wanted)
    ]


def find(conn: Connection, names_or_uuids: Iterable[str]) -> list[Server]:
    """The servers of those names, each once; raises InstanceNotFound or InvalidRequest."""
    known = read(conn)
    found: dict[str, Server] = {}
    for sought in names_or_uuids:
        server = _the_one(known, sought)
        found[server.uuid] = server
    return list(found.values())


def _the_one(known: list[Server], sought: str) -> Server:
    meant = [each for each in known if each.uuid == sought]
    meant = meant or [each for each in known if each.name == sought]
    if not meant:
        raise errors.InstanceNotFound(instance_id=sought)
    if len(meant) > 1:
        reason = f"{len(meant)} servers have that name, give the uuid of one"
        raise errors.InvalidRequest(field=sought, reason=reason)
    return meant[0]


POLL_SECONDS = 0.3


@dataclass(frozen=True)
class Watch:
    """Polls *database*; *clock* gives seconds that never jump, *pause* waits for some."""

    database: Database
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def until(
        self,
        read: Callable[[], Sequence[Server]],
        is_done: Callable[[Sequence[Server]], bool],
        timeout_seconds: float,
        show: Callable[[Sequence[Server]], None],
    ) -> tuple[Sequence[Server], bool]:
        """The last reading, all of which are shown, and False when the time was over."""
        deadline = self.clock() + timeout_seconds
        while True:
            seen = read()
            show(seen)
            if is_done(seen):
                return seen, True
            if self.clock() >= deadline:
                return seen, False
            self.pause(POLL_SECONDS)

    def has_living_conductor(self, down_seconds: float) -> bool:
        """True when a conductor has sent a heartbeat within *down_seconds*."""
        tolerance = datetime.timedelta(seconds=down_seconds)
        with self.database.read() as conn:
            found = fleet_rows.of_topic(conn, TOPIC)
        return any(
            not (each.disabled or each.forced_down)
            and abs(rows.utcnow() - (each.last_seen_up or each.created_at)) <= tolerance
            for each in found
        )


def unheard_of(
    servers: Sequence[Server], wanted: int, timeout_seconds: float, has_conductor: bool
) -> str:
    """The reason for a time-out: the services that have not acted."""
    waiting = [each for each in servers if not each.is_settled]
    untaken = [each for each in waiting if each.attempts == 0]
    unbuilt = [each for each in waiting if each.attempts]
    reasons = []
    if untaken:
        doing = "has taken" if has_conductor else "is running, none has taken"
        reasons.append(f"no conductor {doing} {_count(len(untaken))}")
    if unbuilt:
        hosts = sorted({each.instance.host for each in unbuilt if each.instance.host})
        named = f" ({', '.join(hosts)})" if hosts else ""
        reasons.append(f"no compute host{named} has finished building {_count(len(unbuilt))}")
    gone = wanted - len(servers)
    if gone:
        reasons.append(f"{_count(gone)} deleted meanwhile")
    return f"not within {timeout_seconds:g} seconds: {'; '.join(reasons)}"


def _count(number: int) -> str:
    return "1 server" if number == 1 else f"{number} servers"


def summary(servers: Sequence[Server], wanted: int) -> str:
    """The number of servers per state, in a few words."""
    active = sum(each.instance.vm_state == ACTIVE for each in servers)
    failed = sum(each.instance.vm_state == ERROR for each in servers)
    return f"{active} of {wanted} active, {failed} in error"


DELETING = "deleting"
"""The task state that keeps a host from finishing the build of a server."""


def delete_server(
    context: RequestContext, database: Database, compute: ComputeAPI, uuid: str
) -> str | None:
    """Delete the server, and name the host that was told; raises InstanceNotFound."""
    if database.write_retrying(lambda conn: _delete_if_only_asked_for(conn, uuid)):
        return None
    instance, disks = database.write_retrying(lambda conn: _delete_unless_hosted(conn, uuid))
    if instance.host is None:
        return None
    compute.terminate_instance(context, instance, disks)
    return str(instance.host)


def _delete_if_only_asked_for(conn: Connection, uuid: str) -> bool:
    """Take back a build request whose server has no row yet; whether that was the case."""
    if instances.list_all(conn, uuids=[uuid], parts=False):
        return False
    try:
        build_requests.destroy(conn, uuid)
    except errors.BuildRequestNotFound:
        return False
    mappings.delete_instance_mapping(conn, uuid)
    return True


def _delete_unless_hosted(
    conn: Connection, uuid: str
) -> tuple[objects.Instance, objects.BlockDeviceMappingList]:
    instance = instances.get(conn, uuid)
    disks = block_devices.of_instance(conn, uuid)
    # Without its build request, a build that has no host yet is dropped by the conductor.
    try:
        build_requests.destroy(conn, uuid)
    except errors.BuildRequestNotFound:
        LOG.debug("Instance %s has no build request any more", uuid)
    mappings.delete_instance_mapping(conn, uuid)
    if instance.host is None and instances.update(
        conn, uuid, expected_host=None, vm_state="deleted", task_state=None
    ):
        instances.destroy(conn, uuid)
        return instance, disks
    instances.update(conn, uuid, task_state=DELETING)
    return instances.get(conn, uuid), disks  # a host may have taken it just now
