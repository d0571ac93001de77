"""Claims of hosts that a scheduler named, for who decides nothing: the conductor.

In a database they are the schedulers' own claims, with the same compare-and-swap; whether the host
still fits is judged by the limits that came with its name.  In Placement they are allocations.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub.claims import allocation_request
from scheduler import objects
from scheduler.claims import amounts
from scheduler.claims.loading import claims_database
from scheduler.claims.placement.client import PlacementClient, Requester, Unavailable
from scheduler.db import claims as claim_rows
from scheduler.db import compute_nodes, instances
from scheduler.db import rows as db_rows
from scheduler.db.database import Database
from scheduler.hosts import consumption, evidence, rows
from scheduler.hosts.consumption import Consumption, Fitting
from scheduler.hosts.table import HostTable
from scheduler.idempotency import answer_to_text

LOG = logging.getLogger(__name__)

#: Most attempts on a host when others claimed on it meanwhile.
ATTEMPTS = 10
MB_PER_GB = 1024


@dataclass(frozen=True, slots=True)
class _State:
    """A host as it was read: generation first, then claims, then instances, then the report."""

    host_id: int
    generation: int
    own: Any
    table: HostTable
    row: int | None
    source_host: str | None


class AlternateClaims:
    """Claims hosts for instances; *fleet_of* gives the database with the rows of a host."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        database: Database,
        fleet_of: Callable[[objects.Selection], Database],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*database* is that of ``[database]``."""
        self._database = claims_database(conf, database)
        self._fleet_of = fleet_of
        self._clock = clock
        self._ratios = rows.Ratios.from_conf(conf)
        self._fitting = Fitting.from_conf(conf)
        self._expiry = datetime.timedelta(seconds=conf.claims.expiry_seconds)

    def claim(
        self,
        context: Any,
        spec: objects.RequestSpec,
        instance_uuid: str,
        selection: objects.Selection,
    ) -> bool:
        """Claim the host of *selection* for the instance, instead of what was claimed before.

        False if it does not fit there any more, or if others are always faster.
        """
        limits = {} if selection.limits is None else selection.limits.to_dict()
        amount = Consumption.from_request(spec, limits, self._fitting)
        request_id = f"{getattr(context, 'request_id', None)}/alternate"
        for _attempt in range(ATTEMPTS):
            state = self._read(instance_uuid, selection)
            if _is_own(state.own, selection, request_id):
                return True
            if not _fits(state, amount, limits):
                LOG.info(
                    "Host %s is full by now; instance %s does not go there",
                    selection.service_host,
                    instance_uuid,
                )
                return False
            values = {
                "consumer_uuid": instance_uuid,
                "request_id": request_id,
                "flavor_id": spec.flavor.id,
                **amounts.to_columns(amount),
            }
            if self._write(values, selection, state):
                return True
        LOG.warning("Host %s could not be claimed: others were faster", selection.service_host)
        return False

    def release(self, context: Any, instance_uuid: str) -> None:
        """Whatever is claimed for the instance is free again."""
        del context
        now = db_rows.utcnow()
        self._database.write_retrying(lambda conn: claim_rows.close_of(conn, instance_uuid, now))

    def _read(self, uuid: str, selection: objects.Selection) -> _State:
        key = selection.service_host, selection.nodename or ""
        host = claim_rows.begin(self._database, [key])[key]
        with self._database.read() as conn:
            own = claim_rows.of_consumers(conn, [uuid]).get(uuid)
            claimed = claim_rows.list_all(conn, host=key[0])
        here = [each for each in claimed if each.node == key[1] and each.consumer_uuid != uuid]
        with self._fleet_of(selection).read() as conn:
            found = instances.rows_by_uuid(conn, [uuid, *(each.consumer_uuid for each in here)])
            report = compute_nodes.living_row(conn, *key)
        table = HostTable()
        row = None
        if report is not None:
            row = table.put(rows.key(report), rows.values(report, self._ratios, None))
            reported_at, now = table.value(row, "updated_at"), self._clock()
            for each in here:
                terms = evidence.terms_of(each, rows.key(report))
                instance = found.get(each.consumer_uuid)
                if evidence.end_of(terms, instance, reported_at, now) is None:
                    consumption.take(table, row, amounts.of_row(each, self._fitting))
        return _State(host.id, host.generation, own, table, row, _home_of(found.get(uuid)))

    def _write(self, values: dict[str, Any], selection: objects.Selection, state: _State) -> bool:
        """Claim as *values* say, in place of what was claimed; False if others were faster."""
        now = db_rows.utcnow()
        values |= {
            "host": selection.service_host,
            "node": selection.nodename or "",
            "generation": state.generation + 1,
            "source_host": state.source_host,
            "answer": answer_to_text([selection]),
            "created_at": now,
            "expires_at": now + self._expiry,
        }

        def write(conn: Connection) -> bool:
            if not claim_rows.compare_and_swap(conn, {state.host_id: (state.generation, 1)}):
                return False
            claim_rows.retire(conn, [state.own] if state.own else [], now)
            claim_rows.insert(conn, [values])
            return True

        try:
            return self._database.write_retrying(write)
        except db_exception.DBDuplicateEntry:
            LOG.debug("Instance %s was claimed for just now", values["consumer_uuid"])
            return False


def _is_own(own: Any, selection: objects.Selection, request_id: str) -> bool:
    """True when this very host was claimed before, by a delivery of the same message."""
    if own is None or own.request_id != request_id:
        return False
    return bool(own.host == selection.service_host and own.node == (selection.nodename or ""))


def _home_of(instance: Any) -> str | None:
    """The host that the instance is to leave; None for one that is being built."""
    if instance is None or instance.vm_state in (None, evidence.BUILDING):
        return None
    return instance.host


def _fits(state: _State, amount: Consumption, limits: Mapping[str, Any]) -> bool:
    if state.row is None or not state.table.value(state.row, "reported"):
        return False

    def value(name: str) -> int:
        return int(state.table.value(state.row or 0, name))

    used = {
        "memory_mb": value("total_usable_ram_mb") - value("free_ram_mb") + amount.ram_mb,
        "vcpu": value("vcpus_used") + amount.vcpus,
        "disk_gb": value("total_usable_disk_gb")
        + (amount.disk_mb - value("free_disk_mb")) / MB_PER_GB,
    }
    if any(limits.get(name) is not None and used[name] > limits[name] for name in used):
        return False
    booking = consumption.take(state.table, state.row, amount)
    return booking is None or booking.placement.error is None


class PlacementAlternates:
    """Claims the allocation that a Selection carries, and gives back what an instance has."""

    def __init__(self, client: PlacementClient) -> None:
        self._client = client

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> PlacementAlternates:
        """With the Placement of ``[placement]``; raises ConfigurationError."""
        return cls(PlacementClient.from_conf(conf))

    def claim(
        self,
        context: Any,
        spec: objects.RequestSpec,
        instance_uuid: str,
        selection: objects.Selection,
    ) -> bool:
        """Claim the host of *selection* for the instance, besides what it has.

        The host that failed has given back its part; one that moves keeps the host it is on.
        A selection without an allocation request needs none.  False if Placement refuses or does
        not answer; raises AllocationUpdateFailed when somebody else claims for the instance.
        """
        request = allocation_request(selection)
        if request is None:
            return True
        requester = Requester.from_request(context, spec)
        version = selection.allocation_request_version
        try:
            before = self._client.claim(requester, instance_uuid, request, version, lambda: True)
        except Unavailable as error:
            LOG.warning("Placement is not available for instance %s: %s", instance_uuid, error)
            return False
        return before is not None

    def release(self, context: Any, instance_uuid: str) -> None:
        """Whatever the instance has is free again."""
        try:
            self._client.delete(instance_uuid, getattr(context, "request_id", None))
        except Unavailable as error:
            LOG.error("The allocations of instance %s stay: %s", instance_uuid, error)

    def leave(self, context: Any, instance_uuid: str, node_uuid: str) -> None:
        """The instance is not on the host with that node any more; what it has elsewhere stays."""
        request_id = getattr(context, "request_id", None)
        try:
            before = self._client.allocations(instance_uuid, request_id)
            rest = {
                provider: each
                for provider, each in before["allocations"].items()
                if provider != node_uuid
            }
            if len(rest) < len(before["allocations"]):
                # Whose it is stays what it was.
                owner = Requester(before["project_id"], before["user_id"], request_id)
                self._client.give_back(owner, instance_uuid, {"allocations": rest})
        except Unavailable as error:
            LOG.error("Instance %s keeps allocations on %s: %s", instance_uuid, node_uuid, error)
