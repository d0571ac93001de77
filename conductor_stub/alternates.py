"""Claims of hosts that a scheduler named, for who decides nothing: the conductor.

In a database they are the schedulers' own claims, with the same compare-and-swap; whether the host
still fits is judged by the limits that came with its name.  In Placement they are allocations.
Reference page conductor, sections 5 (step 6.2) and 7.
"""

import datetime
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging
from sqlalchemy import Connection

from conductor_stub.records import HostList, limits_of
from scheduler import errors, objects
from scheduler.claims import amounts, loading
from scheduler.claims.placement.client import PlacementClient, Requester, Unavailable
from scheduler.db import claims as claim_rows
from scheduler.db import compute_nodes, instances
from scheduler.db import rows as db_rows
from scheduler.db.claims import Move
from scheduler.db.database import Database
from scheduler.hosts import rows
from scheduler.hosts.columns import seconds
from scheduler.hosts.host_state import Consumption, Fitting, consume
from scheduler.hosts.instances import BUILDING, end_of, terms_of
from scheduler.hosts.table import HostTable
from scheduler.idempotency import answer_to_text
from scheduler.semantics import Ratios

LOG = logging.getLogger(__name__)

#: Most attempts on a host when others claimed on it meanwhile.
ATTEMPTS = 10
MB_PER_GB = 1024


class Claims:
    """Claims of a conductor that has nowhere to write any: hosts that need none can be had."""

    def claim(
        self, context: Any, spec: objects.RequestSpec, uuid: str, selection: objects.Selection
    ) -> bool:
        """Claim the host of *selection* for the instance; False if it cannot be had."""
        del context, spec
        if allocation_request(selection) is None:
            return True
        LOG.warning(
            "An alternate host of instance %s needs an allocation in Placement, but this conductor "
            "has no Placement client; the host is passed over",
            uuid,
        )
        return False

    def release(self, context: Any, uuid: str) -> None:
        """Give back whatever is claimed for the instance."""

    def leave(self, context: Any, uuid: str, node_uuid: str) -> None:
        """Give back what the instance has on one node, which it has left."""

    def choose(
        self, context: Any, spec: objects.RequestSpec, uuid: str, candidates: HostList
    ) -> objects.Selection:
        """Take the first candidate that can be claimed, and those before it, off the list.

        Raises MaxRetriesExceeded when there is none.
        """
        while candidates:
            chosen = candidates.pop(0)
            if self.claim(context, spec, uuid, chosen):
                return chosen
        raise errors.MaxRetriesExceeded(
            reason=f"Exhausted all hosts available for retrying build failures for instance {uuid}."
        )


def allocation_request(selection: objects.Selection) -> dict[str, Any] | None:
    """The allocation to claim; None where the scheduler works without Placement."""
    text = selection.allocation_request
    return json.loads(text) if text else None


def note_providers(spec: objects.RequestSpec | None, chosen: objects.Selection) -> None:
    """Note in the resource groups of *spec* the providers of the allocation of *chosen*."""
    if spec is None:
        return
    mappings = (allocation_request(chosen) or {}).get("mappings") or {}
    for group in spec.requested_resources or ():
        if group.requester_id in mappings:
            group.provider_uuids = mappings[group.requester_id]


class AlternateClaims(Claims):
    """Claims in the database of the schedulers; *database* is that of ``[database]``."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        database: Database,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.pause = pause
        self._fleet = database
        self._database = loading.claims_database(conf, database)
        self._clock = clock
        self._ratios = Ratios.from_conf(conf)
        self._fitting = Fitting.from_conf(conf)
        self._expiry = datetime.timedelta(seconds=conf.claims.expiry_seconds)
        self._longest_hold = 2.0 * conf.claims.grace_seconds

    def claim(
        self, context: Any, spec: objects.RequestSpec, uuid: str, selection: objects.Selection
    ) -> bool:
        """Claim the host of *selection* for the instance, instead of what was claimed before.

        False if it does not fit there any more, or if others are always faster.
        """
        limits = limits_of(selection)
        amount = Consumption.from_request(spec, limits, self._fitting)
        values = {
            "consumer_uuid": uuid,
            "request_id": f"{getattr(context, 'request_id', None)!s:.240}/alternate",
            "flavor_id": spec.flavor.id,
            "host": selection.service_host,
            "node": selection.nodename or "",
            "source_host": None,
            "answer": answer_to_text([selection]),
            **amounts.to_columns(amount),
        }
        for _attempt in range(ATTEMPTS):
            host, own, others = self._claims_on(values)
            before = [each for each in own if each.request_id == values["request_id"]]
            if any((each.host, each.node) == (values["host"], values["node"]) for each in before):
                return True  # claimed before, by a delivery of the same message
            with self._fleet.read() as conn:
                consumers = [uuid, *(each.consumer_uuid for each in others)]
                found = instances.rows_by_uuid(conn, consumers)
                reports = compute_nodes.list_all(conn, values["host"], selection.nodename or None)
            table = HostTable()
            if reports:
                self._put(table, reports[0], others, found)
            if not _fits(table, amount, limits):
                LOG.info(
                    "Host %s is full by now; instance %s does not go there",
                    selection.service_host,
                    uuid,
                )
                return False
            # One that is being built has no host to leave.
            mine = found.get(uuid)
            if mine is not None and mine.vm_state not in (None, BUILDING):
                values["source_host"] = mine.host
            if self._write(values, host, *([each.id for each in some] for some in (own, before))):
                return True
        LOG.warning("Host %s could not be claimed: others were faster", selection.service_host)
        return False

    def release(self, context: Any, uuid: str) -> None:
        """See the base class."""
        del context

        def close(connection: Connection) -> None:
            found = claim_rows.of_consumers(connection, [uuid])
            claim_rows.close(connection, {r.id: r.generation for r in found}, db_rows.utcnow())

        self._database.write_retrying(close)

    def _claims_on(self, values: dict[str, Any]) -> tuple[Any, Sequence[Any], list[Any]]:
        """The host's row, the claims of the instance, and those of others there.

        The generation is read before the claims, and these before instances and reports.  While
        schedulers write lost claims again, it waits: each of these moves the generation on.
        """
        key, uuid = (values["host"], values["node"]), values["consumer_uuid"]
        host = claim_rows.begin(self._database, [key])[key]
        with self._database.read() as conn:
            held_until = claim_rows.held_until(conn)
            own = claim_rows.of_consumers(conn, [uuid])
            claimed = claim_rows.list_all(conn, host=key[0])
        held_seconds = min(seconds(held_until) - self._clock(), self._longest_hold)
        if held_seconds > 0:
            LOG.info("Lost claims are written again; waiting %.1f s", held_seconds)
            self.pause(held_seconds)
        others = [each for each in claimed if each.node == key[1] and each.consumer_uuid != uuid]
        return host, own, others

    def _put(
        self, table: HostTable, report: Any, claimed: list[Any], found: Mapping[str, Any]
    ) -> None:
        """Put the host into *table*, less what is *claimed* there and not reported yet."""
        key = rows.key(report)
        row = table.put(key, rows.values(report, self._ratios, None))
        reported_at, now = table.value(row, "updated_at"), self._clock()
        for each in claimed:
            terms, instance = terms_of(each), found.get(each.consumer_uuid)
            if end_of(terms, instance, reported_at, now) is None:
                consume(table, row, amounts.of_row(each, self._fitting))

    def _write(self, values: dict[str, Any], host: Any, *ids: list[int]) -> bool:
        """Claim as *values* say; claims with these *ids* make way.  False if others were faster."""
        now, move = db_rows.utcnow(), Move.from_row(host)
        times = {"created_at": now, "expires_at": now + self._expiry}
        several = [{**values, **move.made, **times}]
        try:
            self._database.write_retrying(
                lambda conn: claim_rows.claim(conn, [move], several, now, *ids)
            )
        except (claim_rows.Moved, db_exception.DBDuplicateEntry):
            LOG.debug("Others have just claimed for %s or on its host", values["consumer_uuid"])
            return False
        return True


def _fits(table: HostTable, amount: Consumption, limits: Mapping[str, Any]) -> bool:
    """True when the host of *table* can be had, which must have sent a report."""
    row = next(iter(table.rows.values()), None)
    if row is None or not table.value(row, "reported"):
        return False
    names = ("total_usable_ram_mb", "free_ram_mb", "vcpus_used")
    ram_mb, free_ram_mb, vcpus = (int(table.value(row, name)) for name in names)
    disk_gb, free_disk_mb = (
        int(table.value(row, name)) for name in ("total_usable_disk_gb", "free_disk_mb")
    )
    used = {
        "memory_mb": ram_mb - free_ram_mb + amount.ram_mb,
        "vcpu": vcpus + amount.vcpus,
        "disk_gb": disk_gb + (amount.disk_mb - free_disk_mb) / MB_PER_GB,
    }
    if any(limits.get(name) is not None and used[name] > limits[name] for name in used):
        return False
    reservation = consume(table, row, amount)
    return reservation is None or reservation.error is None


class PlacementAlternates(Claims):
    """Claims the allocation that a Selection carries, and gives back what an instance has."""

    def __init__(self, client: PlacementClient) -> None:
        self._client = client

    def claim(
        self, context: Any, spec: objects.RequestSpec, uuid: str, selection: objects.Selection
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
        try:
            before = self._client.claim(requester, uuid, request, lambda: True)
        except Unavailable as error:
            LOG.warning("Placement is not available for instance %s: %s", uuid, error)
            return False
        return before is not None

    def release(self, context: Any, uuid: str) -> None:
        """See the base class."""
        try:
            requester = Requester(None, None, getattr(context, "request_id", None))
            self._client.delete(uuid, requester)
        except Unavailable as error:
            LOG.error("The allocations of instance %s stay: %s", uuid, error)

    def leave(self, context: Any, uuid: str, node_uuid: str) -> None:
        """See the base class."""
        request_id = getattr(context, "request_id", None)
        try:
            before = self._client.allocations(uuid, Requester(None, None, request_id))
            rest = {
                provider: each
                for provider, each in before["allocations"].items()
                if provider != node_uuid
            }
            if len(rest) < len(before["allocations"]):
                # Whose it is stays what it was.
                owner = Requester(before["project_id"], before["user_id"], request_id)
                self._client.give_back(owner, uuid, {"allocations": rest})
        except Unavailable as error:
            LOG.error("Instance %s keeps allocations on %s: %s", uuid, node_uuid, error)


def claims_from_conf(conf: cfg.ConfigOpts, database: Database) -> Claims:
    """Claims as ``[scheduler] claims`` says; raises ConfigurationError."""
    if conf.scheduler.claims == loading.PLACEMENT:
        return PlacementAlternates(PlacementClient.from_conf(conf))
    if conf.scheduler.claims == loading.DATABASE:
        return AlternateClaims(conf, database)
    return Claims()
