"""Comparing claims, instances and compute nodes: every difference, by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.claims import amounts
from scheduler.hosts import consumption, evidence, rows
from scheduler.hosts.consumption import TOPOLOGY, Fitting
from scheduler.hosts.evidence import End
from scheduler.hosts.rows import Ratios
from scheduler.hosts.table import HostTable

#: Finding for a claim that is over, for an operator.
ENDS = {
    End.REPORTED: "the host reports the instance already",
    End.DELETED: "the instance is deleted",
    End.FAILED: "the instance is in ERROR",
    End.ELSEWHERE: "the instance is on {host}",
    End.EXPIRED: "expired at {expires_at}",
}
MB_PER_GB = 1024


#: Finding for a claim on cells or devices that are not there.
NOT_LEFT = "beside what is reported and claimed before it the host has not what it takes"
#: A new instance may be written a little later than its claim.
NEW_SECONDS = 60.0
Key = tuple[str, str]


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
    """Every difference between the open *claims*, read first, and the *fleet*.

    *fitting* says how cells and devices are given out; *now* in seconds since the epoch.
    """
    of_key = {(row.host, row.hypervisor_hostname or ""): row for row in fleet.nodes}
    found: list[Difference] = []
    open_claims = defaultdict(list)
    for claim in claims:
        node = of_key.get((claim.host, claim.node))
        instance = fleet.instances.get(claim.consumer_uuid)
        end = _end_of(claim, instance, node, now)
        if node is None:
            found.append(_of_claim(claim, "no compute node", "there is no such compute node"))
        if end is not None:
            host = getattr(instance, "host", None)
            text = ENDS[end].format(host=host, expires_at=claim.expires_at)
            found.append(_of_claim(claim, f"not closed: {end.value}", text))
            continue
        open_claims[claim.host, claim.node].append(claim)
        if instance is None and now - rows.seconds(claim.created_at) > NEW_SECONDS:
            found.append(_of_claim(claim, "no instance", "there is no such instance"))
    for key, node in sorted(of_key.items()):
        found += _miscounted(key, node, fleet.counts.get(key, 0))
        found += _overbooked(key, node, open_claims[key], ratios)
        found += _not_fitting(node, open_claims[key], ratios, fitting)
    return found


def _end_of(claim: Any, instance: Any, node: Any, now: float) -> End | None:
    terms = evidence.terms_of(claim, (claim.host, claim.node))
    reported_at = float("-inf") if node is None else rows.seconds(node.updated_at)
    return evidence.end_of(terms, instance, reported_at, now)


def _of_claim(claim: Any, kind: str, what: str) -> Difference:
    return Difference(kind, claim.host, claim.node, claim.consumer_uuid, what)


def _miscounted(key: Key, node: Any, present: int) -> list[Difference]:
    """Differences where the host reports another number of instances than there are on it."""
    reported = node.running_vms
    if reported is None or reported == present:
        return []
    what = f"{reported} instances reported, {present} are there"
    return [Difference("report", *key, None, what)]


def _overbooked(key: Key, node: Any, claims: Sequence[Any], ratios: Ratios) -> list[Difference]:
    """Differences where reports and claims together exceed what the host has, overcommitted."""
    if node.free_disk_gb is None:
        return []
    values = rows.values(node, ratios, None)
    limits = {
        "MB of memory": (
            values["total_usable_ram_mb"] * values["ram_allocation_ratio"],
            values["total_usable_ram_mb"] - values["free_ram_mb"],
            sum(each.memory_mb for each in claims),
        ),
        "vCPUs": (
            values["vcpus_total"] * values["cpu_allocation_ratio"],
            values["vcpus_used"],
            sum(each.vcpus for each in claims),
        ),
        "GB of disk": (
            values["total_usable_disk_gb"] * values["disk_allocation_ratio"],
            values["total_usable_disk_gb"] - values["free_disk_mb"] // MB_PER_GB,
            sum(each.disk_gb for each in claims),
        ),
    }
    return [
        Difference(
            "overbooked",
            *key,
            None,
            f"{used} {unit} reported and {claimed} claimed, of {limit:g}",
        )
        for unit, (limit, used, claimed) in limits.items()
        if claimed and used + claimed > limit
    ]


def _not_fitting(
    node: Any, claims: Sequence[Any], ratios: Ratios, fitting: Fitting
) -> Iterator[Difference]:
    """Claims on cells and devices that are not there beside the report and the earlier claims."""
    wanting = [each for each in claims if each.numa_topology or each.pci_requests]
    if not wanting or node.free_disk_gb is None:
        return
    table = HostTable()
    row = table.put(rows.key(node), rows.values(node, ratios, None))
    for claim in sorted(wanting, key=lambda each: each.generation):
        amount = amounts.of_row(claim, fitting)
        has_cells = bool(table.value(row, TOPOLOGY)) and claim.numa_topology is not None
        booking = consumption.take(table, row, amount)
        if booking is None:
            continue
        if booking.placement.error is not None:
            yield _of_claim(claim, "overbooked", f"{NOT_LEFT}: {booking.placement.error}")
        elif has_cells and booking.placement.counted is None:
            yield _of_claim(claim, "overbooked", f"{NOT_LEFT}: no NUMA cells that it fits on")
