"""Servers as their users see them: where they are, how they came there, why they failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from conductor_stub.failure import ATTEMPTS_KEY
from scheduler import errors, objects
from scheduler.db import build_requests, instances

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
        """Whether it runs."""
        return self.instance.vm_state == ACTIVE

    @property
    def is_settled(self) -> bool:
        """Whether its build has come to an end, good or bad."""
        return self.instance.vm_state in (ACTIVE, ERROR)


def read(conn: Connection, uuids: Sequence[str] | None = None) -> list[Server]:
    """The servers of those uuids that are still there, or all.

    Those that are only asked for so far come last.
    """
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
    """The servers meant, in the order given and each once.

    Raises InstanceNotFound for a name that none has, InvalidRequest for one that several have.
    """
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
