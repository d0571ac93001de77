"""Servers as their users see them: reading, watching and deleting them.

Reference page conductor, sections 4 (step 4), 8.2 and 11.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from conductor_stub import server_rows, wire_objects
from conductor_stub.compute_rpcapi import ComputeAPI
from scheduler import errors, objects
from scheduler.db import instances
from scheduler.db.database import Database
from scheduler.rpc.context import RequestContext

ACTIVE = "active"
ERROR = "error"


@dataclass(frozen=True)
class Server:
    """One server; ``attempts`` is 0 until a conductor has taken it, ``fault`` why it failed."""

    instance: objects.Instance
    attempts: int
    fault: Any

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
    """The servers of those uuids, or all.

    Those come last whose rows their conductor has yet to make (reference page conductor, 11).
    """
    found = instances.list_all(conn, uuids=uuids)
    known = {each.uuid for each in found}
    if uuids is None or not known.issuperset(uuids):
        asked_for = [each.instance for each in server_rows.list_build_requests(conn, uuids)]
        found += [each for each in asked_for if each.uuid not in known]
    faults = server_rows.latest_faults(conn, [each.uuid for each in found])
    return [
        Server(
            each,
            int(each.system_metadata.get(server_rows.ATTEMPTS_KEY) or 0),
            faults.get(each.uuid),
        )
        for each in found
    ]


def find(conn: Connection, names_or_uuids: Iterable[str]) -> list[Server]:
    """The servers of those names, each once; raises InstanceNotFound or InvalidRequest."""
    known, found = read(conn), {}
    for sought in names_or_uuids:
        meant = [each for each in known if each.uuid == sought]
        meant = meant or [each for each in known if each.name == sought]
        if not meant:
            raise errors.InstanceNotFound(instance_id=sought)
        if len(meant) > 1:
            reason = f"{len(meant)} servers have that name, give the uuid of one"
            raise errors.InvalidRequest(field=sought, reason=reason)
        found[meant[0].uuid] = meant[0]
    return list(found.values())


POLL_SECONDS = 0.3


def watch(
    database: Database,
    uuids: Sequence[str],
    is_settled: Callable[[Server], bool],
    timeout_seconds: float,
    text: Callable[[Sequence[Server]], str] = lambda _seen: "",
) -> tuple[Sequence[Server], bool]:
    """Wait until all servers that are left are settled, with a line of *text* for each change.

    Returns the servers, and False on a time-out.
    """
    deadline, shown = time.monotonic() + timeout_seconds, ""
    while True:
        with database.read() as conn:
            seen = read(conn, uuids)
        if (line := text(seen)) != shown:
            shown = line
            sys.stderr.write(f"{shown}\n")
        if all(map(is_settled, seen)):
            return seen, True
        if time.monotonic() >= deadline:
            return seen, False
        time.sleep(POLL_SECONDS)


def unheard_of(servers: Sequence[Server], wanted: int, timeout_seconds: float) -> str:
    """The reason for a time-out: the services that have not acted."""
    waiting = [each for each in servers if not each.is_settled]
    untaken = [each for each in waiting if each.attempts == 0]
    unbuilt = [each for each in waiting if each.attempts]
    reasons = []
    if untaken:
        reasons.append(f"no conductor has taken {_count(len(untaken))}")
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
    """Delete the server, and name the host that got the cast; raises InstanceNotFound."""
    hosted = database.write_retrying(lambda conn: _delete_unless_hosted(conn, uuid))
    if hosted is None:
        return None
    instance, disks = hosted
    host = str(instance.host)
    compute.cast(context, host, "terminate_instance", instance=instance, bdms=disks)
    return host


def _delete_unless_hosted(
    conn: Connection, uuid: str
) -> tuple[objects.Instance, wire_objects.BlockDeviceMappingList] | None:
    # Without its build request, a build that has no host yet is dropped by the conductor.
    was_asked_for = server_rows.delete_build_request(conn, uuid)
    if was_asked_for and not instances.list_all(conn, uuids=[uuid], parts=False):
        return None
    instance = instances.get(conn, uuid)
    disks = server_rows.disks_of(conn, uuid)
    if instance.host is None and server_rows.update_if(
        conn, uuid, {"host": None}, vm_state="deleted", task_state=None
    ):
        server_rows.destroy_instance(conn, uuid)
        return None
    instances.update(conn, uuid, task_state=DELETING)
    return instances.get(conn, uuid), disks  # a host may have taken it just now
