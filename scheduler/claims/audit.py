"""Comparing claims, instances and compute nodes: every difference, by name."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.claims import amounts
from scheduler.claims.amounts import MB_PER_GB
from scheduler.hosts import instances, rows
from scheduler.hosts.columns import NEVER, seconds
from scheduler.hosts.host_state import TOPOLOGY, Fitting, consume
from scheduler.hosts.instances import End
from scheduler.hosts.table import HostTable, Key
from scheduler.semantics import Ratios

#: Finding for a claim that is over, for an operator.
ENDS = {
    End.REPORTED: "the host reports the instance already",
    End.REVERTED: "the instance stays on {host}",
    End.DELETED: "the instance is deleted",
    End.FAILED: "the instance is in ERROR",
    End.ELSEWHERE: "the instance is on {host}",
    End.EXPIRED: "expired at {expires_at}",
}
OVERBOOKED = "overbooked"
#: Finding for a claim on cells or devices that are not there.
NOT_LEFT = "beside what is reported and claimed before it the host has not what it takes"
#: A new instance may be written a little later than its claim.
NEW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """Rows read after the claims: their instances by uuid, how many instances are on each
    (host, node), and at last the rows of the compute nodes.
    """

    instances: Mapping[str, Any]
    counts: Mapping[Key, int]
    nodes: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that does not agree; *consumer_uuid* is None where it concerns a whole host."""

    kind: str
    host: str
    node: str
    consumer_uuid: str | None
    what: str


def differences(
    claims: Sequence[Any], fleet: Fleet, ratios: Ratios, fitting: Fitting, now: float
) -> list[Difference]:
    """Every difference between open *claims*, read first, and the *fleet*, at *now* (epoch)."""
    named = [row for row in fleet.nodes if row.host is not None]
    node_of_key = {(row.host, row.hypervisor_hostname or ""): row for row in named}
    found: list[Difference] = []
    open_claims = defaultdict(list)

    def note(claim: Any, kind: str, what: str) -> None:
        found.append(Difference(kind, claim.host, claim.node, claim.consumer_uuid, what))

    for claim in claims:
        key = claim.host, claim.node
        node, instance = node_of_key.get(key), fleet.instances.get(claim.consumer_uuid)
        reported_at = NEVER if node is None else seconds(node.updated_at)
        end = instances.end_of(instances.terms_of(claim), instance, reported_at, now)
        if node is None:
            note(claim, "no compute node", "there is no such compute node")
        if end is not None:
            host = getattr(instance, "host", None)
            text = ENDS[end].format(host=host, expires_at=claim.expires_at)
            note(claim, f"not closed: {end.value}", text)
            continue
        open_claims[key].append(claim)
        if instance is None and now - seconds(claim.created_at) > NEW_SECONDS:
            note(claim, "no instance", "there is no such instance")
    for key, node in sorted(node_of_key.items()):
        reported, present = node.running_vms, fleet.counts.get(key, 0)
        if reported not in (None, present):
            what = f"{reported} instances reported, {present} are there"
            found.append(Difference("report", *key, None, what))
        if node.free_disk_gb is not None and open_claims[key]:
            found += _overbooked(key, node, open_claims[key], ratios, fitting)
    return found


def _overbooked(
    key: Key, node: Any, claims: Sequence[Any], ratios: Ratios, fitting: Fitting
) -> Iterator[Difference]:
    """Differences where reports and claims together exceed what the host has, overcommitted."""
    values = rows.values(node, ratios, None)
    ram_mb, disk_gb = values["total_usable_ram_mb"], values["total_usable_disk_gb"]
    amounts_of_unit = {
        "MB of memory": ("memory_mb", ram_mb, "ram", ram_mb - values["free_ram_mb"]),
        "vCPUs": ("vcpus", values["vcpus_total"], "cpu", values["vcpus_used"]),
        "GB of disk": ("disk_gb", disk_gb, "disk", disk_gb - values["free_disk_mb"] // MB_PER_GB),
    }
    for unit, (column, total, name, used) in amounts_of_unit.items():
        claimed = sum(getattr(each, column) for each in claims)
        limit = total * values[f"{name}_allocation_ratio"]
        if claimed and used + claimed > limit:
            what = f"{used} {unit} reported and {claimed} claimed, of {limit:g}"
            yield Difference(OVERBOOKED, *key, None, what)
    table = HostTable()
    row = table.put(rows.key(node), values)
    for claim in claims:
        has_cells = bool(table.value(row, TOPOLOGY)) and claim.numa_topology is not None
        taken = consume(table, row, amounts.of_row(claim, fitting))
        lacking: Any = None if taken is None else taken.error
        if taken is not None and has_cells and taken.counted is None:
            lacking = lacking or "no NUMA cells that it fits on"
        if lacking is not None:
            yield Difference(OVERBOOKED, *key, claim.consumer_uuid, f"{NOT_LEFT}: {lacking}")
