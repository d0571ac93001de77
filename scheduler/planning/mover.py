"""Single moves on a fleet in memory, each decided by the daemon's engine and taken back at will."""

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from scheduler import errors, objects
from scheduler.engine.decision import decide
from scheduler.engine.evaluation import FilterChain, Policy
from scheduler.engine.record import NOT_OFFERED, DecisionRecord
from scheduler.explain import sentences
from scheduler.explain.answer import to_dict
from scheduler.explain.refusal import note_refusal
from scheduler.hosts.reservations import Reservation
from scheduler.planning.moves import Move
from scheduler.replay.measures import MEMORY, RESOURCES, Room
from scheduler.replay.virtual_fleet import VirtualFleet

#: Alternates that are named with a move.
ALTERNATES: Final = 2


class OutOfTime(Exception):
    """The time for the search is over."""


class Mover:
    """Moves servers of *fleet*, and takes moves back; OutOfTime after *seconds*."""

    def __init__(
        self,
        fleet: VirtualFleet,
        seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.fleet = fleet
        self.moves: list[Move] = []
        self._clock, self._ends_at, self._made = clock, clock() + seconds, 0
        #: Per move the server as it was, and as it is.
        self._changes: list[tuple[Reservation, Reservation, objects.RequestSpec]] = []
        self._policy = policy = fleet.driver.settings.policy
        rules = FilterChain([each for each in policy.chain.filters if each.is_rule])
        self._rules = dataclasses.replace(policy, chain=rules)

    def rows_but(self, closed: Collection[int]) -> np.ndarray:
        """The rows that may be chosen, in the table's order, without those *closed*."""
        order = self.fleet.table.order
        return order[~np.isin(order, list(closed))] if closed else order

    def rows_of(self, host: str) -> list[int]:
        """The rows of *host*; InvalidRequest if there is none."""
        rows = self.fleet.table.row_numbers((host,))
        if not rows:
            raise errors.InvalidRequest(field=f"host {host!r:.80}", reason="no such compute host")
        return rows

    def is_empty(self, host: str) -> bool:
        return not self.fleet.table.instances.get(host)

    def counts(self) -> dict[str, Any]:
        """Hosts, those without servers, servers, and how full the others are."""
        table = self.fleet.table
        room = Room.from_rows(table, table.order)
        return {
            "hosts": len(table.rows_of_host),
            "empty_hosts": sum(map(self.is_empty, table.rows_of_host)),
            "servers": sum(map(len, table.instances.values())),
            "memory_packing": room.shares(room.capacity - room.free, ~room.is_empty)[MEMORY],
        }

    def memory(self) -> list[float]:
        """Share of the memory in use of each host, the fullest first."""
        table, at = self.fleet.table, RESOURCES.index(MEMORY)
        room = Room.from_rows(table, table.order)
        used = 1 - room.free[at] / np.maximum(room.capacity[at], 1)
        return [round(each, 3) for each in np.sort(used)[::-1].tolist()]

    def move(self, server: Reservation, reason: str, rows: np.ndarray) -> Move | None:
        """Move *server* to the best of *rows*, but not to the host that it is on; None if none."""
        self._require_time()
        source, spec = server.key[0], self.fleet.spec_of[server.uuid or ""]
        rows = rows[~np.isin(rows, self.fleet.table.row_numbers((source,)))]
        self.fleet.remove([server])
        made, others = self._place(spec, server.uuid or "", rows, alternates=ALTERNATES)
        if made is None:
            self._put_back(server, spec)
            return None
        self.fleet.spec_of[server.uuid or ""] = spec
        self.fleet.finish_builds([made])
        group = spec.instance_group.uuid if spec.instance_group is not None else None
        hints = spec.scheduler_hints or {}
        named = (*hints.get("same_host", ()), *hints.get("different_host", ()))
        size = (spec.memory_mb, spec.vcpus, spec.root_gb + spec.ephemeral_gb)
        move = Move(server.uuid or "", source, made.key[0], *size, reason, others, group, named)
        self.moves.append(move)
        self._changes.append((server, made, spec))
        return move

    def take_back(self, length: int) -> None:
        while len(self.moves) > length:
            self.moves.pop()
            before, after, spec = self._changes.pop()
            self.fleet.remove([after])
            self._put_back(before, spec)

    def fits(self, spec: objects.RequestSpec, rows: np.ndarray) -> Reservation | None:
        """Place one nameless server of *spec* on the best of *rows*; None if none will do."""
        self._require_time()
        self._made += 1
        made, _others = self._place(spec, f"server {self._made}", rows)
        return made

    def refusal(
        self, spec: objects.RequestSpec, uuid: str, rows: np.ndarray, policy: Policy | None = None
    ) -> str | None:
        """Sentence on why none of *rows* will do for *spec*; None if one will.  Nothing changes."""
        self._require_time()
        record = DecisionRecord(None, (uuid,), 1, 0, wants_detail=True)
        made, _others = self._place(spec, uuid, rows, record, policy)
        if made is not None:
            self.fleet.reservations.release(made)
            return None
        record.never_evaluated.pop(NOT_OFFERED, None)  # it is the plan that leaves hosts out
        return sentences.cause(to_dict(record))

    def broken_rule(self, server: Reservation) -> str | None:
        """Sentence on the rule against *server* on its host; None if there is none."""
        spec = self.fleet.spec_of[server.uuid or ""]
        home = np.array([self.fleet.table.rows[server.key]])
        self.fleet.remove([server])
        try:
            return self.refusal(spec, server.uuid or "", home, self._rules)
        finally:
            self._put_back(server, spec)

    def _place(
        self,
        spec: objects.RequestSpec,
        name: str,
        rows: np.ndarray,
        record: DecisionRecord | None = None,
        policy: Policy | None = None,
        alternates: int = 0,
    ) -> tuple[Reservation | None, tuple[str, ...]]:
        """The reservation of the server *name*, and the hosts that would do as well."""
        fleet, policy = self.fleet, policy or self._policy
        own = self._own_spec(spec, name)
        notes = DecisionRecord(None, (name,), 1, 0) if record is None else record
        try:
            placement = decide(
                policy,
                fleet.reservations,
                own,
                (name,),
                alternates=alternates,
                now=fleet.clock(),
                record=notes,
                rows=rows,
                on_refusal=functools.partial(note_refusal, notes, policy, own),
            )
        except errors.NoValidHost as error:
            notes.outcome, notes.failure = errors.code_of(error), str(error)
            return None, ()
        (made,) = placement.reservations
        others = placement.alternates[0] if placement.alternates else []
        return made, tuple(each.host for each in others)

    def _own_spec(self, spec: objects.RequestSpec, uuid: str) -> objects.RequestSpec:
        """*spec* for one server that may go anywhere; its group is where its members are now."""
        own = spec.copy()
        own.num_instances = 1
        own.ignore_hosts = own.force_hosts = own.force_nodes = own.retry = None
        own.requested_destination = None
        own.instance_uuid = uuid
        if (group := own.instance_group) is not None:
            homes = self.fleet.table.host_of_instance
            members = [each for each in group.members or () if each != uuid]
            group.hosts = sorted({homes[each] for each in members if each in homes})
        return own

    def _put_back(self, server: Reservation, spec: objects.RequestSpec) -> None:
        self.fleet.reservations.add(server)
        self.fleet.spec_of[server.uuid or ""] = spec

    def _require_time(self) -> None:
        if self._clock() > self._ends_at:
            raise OutOfTime


def by_size(servers: Sequence[Reservation]) -> list[Reservation]:
    """The *servers*, the largest first: what is left is easier to place."""
    return sorted(servers, key=lambda e: (-e.amount.ram_mb, -e.amount.vcpus, e.uuid or ""))
