"""The reasons for removing hosts, and the hosts that came closest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from oslo_log import log as logging

from scheduler import errors
from scheduler.engine.evaluation import (
    Evaluation,
    FilterCount,
    Policy,
    Verdict,
    is_columnar,
    rejections,
)
from scheduler.engine.record import SELECTED, DecisionRecord, Verdicts
from scheduler.explain.measures import describe, measured
from scheduler.filters.base import UNSPECIFIED, BaseHostFilter
from scheduler.filters.trusted_filter import TrustedFilter
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

#: Moment that the numbers are of: that of the decision, or now.
THEN, NOW = "decision", "now"
#: So many hosts per reason of a refusal are examined.
EXAMPLES: Final = 3

#: Reasons for removing hosts before any filter is asked.
CAUSES: Final[Mapping[str, str]] = {
    "service.unknown": "there is no record of a compute service on the host",
    "placement.not_offered": "Placement did not offer the host",
    "cell.disabled": "the host's cell is disabled",
    "destination.other_cell": "the host is not in the cell asked for",
    "destination.other": "the host is not the destination asked for",
    "ignore_hosts.named": "the request says to ignore the host",
    "force_hosts.other": "the request forces another host",
    "force_nodes.other": "the request forces another node",
}


@dataclass(slots=True)
class Example:
    """One host: what it has and lacks, and the other filters it fails, None if not looked at."""

    host: str
    node: str | None
    found: str
    missing: float | None
    also_fails: list[str] | None = None


@dataclass(slots=True)
class Finding:
    """One reason of one filter: how many hosts it removed, what was wanted, the closest of them.

    ``numbers_of`` is NOW where one of these hosts has changed since the decision.
    """

    filter: str
    reason: str
    text: str
    removed: int
    wanted: str | None = None
    note: str | None = None
    examples: list[Example] = field(default_factory=list)
    numbers_of: str = THEN


@dataclass(slots=True)
class Refusal:
    """The reason why instance number *index* got no host."""

    index: int
    findings: list[Finding]
    #: Hosts that passed every filter and could not be given out: others may have claimed them.
    held: int = 0
    #: Counts of this instance's own run, if it is not the first one.
    filters: list[FilterCount] = field(default_factory=list)


@dataclass(slots=True)
class BeforeFilters:
    """One cause: how many hosts, what the request says, and what is wrong with that if it shows."""

    cause: str
    removed: int
    text: str
    wanted: str | None
    note: str | None


def note_refusal(
    record: DecisionRecord,
    policy: Policy,
    request: Any,
    hosts: Candidates,
    evaluation: Evaluation,
    index: int,
) -> None:
    """Write into *record* why none of *hosts* was given out; failing at that changes no answer."""
    if not record.wants_detail:
        return
    try:
        record.before_filters = [
            BeforeFilters(cause, removed, CAUSES.get(cause, cause), *_wish(cause, hosts, request))
            for cause, removed in record.never_evaluated.items()
        ]
        if not len(hosts) or record.filters_skipped:
            return
        if index:  # all hosts are asked anew, now that the instances before have their places
            evaluation = policy.chain.run(hosts, request)
        verdicts = Verdicts.from_evaluation(evaluation, policy.chain.filters)
        record.refusal = _examine(verdicts, hosts, request, index)
        if index:
            record.refusal.filters = evaluation.counts
    except Exception:
        LOG.exception("The refusal of request %s cannot be explained", record.request_id)


def closest_hosts(record: DecisionRecord, scope: Scope) -> list[Finding]:
    """The closest host now, per reason of a success; takes 0.1 ms under the decision lock."""
    verdicts, table = record.verdicts, scope.table
    findings: list[Finding] = []
    if record.outcome != SELECTED or verdicts is None:
        return findings
    changed = np.flatnonzero(table.column("changed_at")[: len(verdicts.of_row)] > verdicts.version)
    replaced = changed[table.column("given_at")[changed] > verdicts.version]
    changed_numbers = frozenset(verdicts.of_row[changed].tolist())
    for (number, code), rows in verdicts.removed():
        if len(replaced):
            rows = np.setdiff1d(rows, replaced)
        if not len(rows):
            continue
        hosts = Candidates(scope, rows)
        finding, _rows = _finding(verdicts.filters[number], code, hosts, record.request, most=1)
        if verdicts.of_row[rows[0]] in changed_numbers:
            finding.numbers_of = NOW
        findings.append(finding)
    return findings


def _examine(verdicts: Verdicts, hosts: Candidates, request: Any, index: int) -> Refusal:
    """Find out why none of *hosts* was given out for instance number *index*."""
    filters, removed = verdicts.filters, verdicts.removed()
    held = len(hosts) - sum(len(rows) for _verdict, rows in removed)
    refusal = Refusal(index, [], held)
    examined: list[tuple[int, int, Example]] = []
    for (number, code), rows in removed:
        each = Candidates(hosts.scope, rows)
        finding, few = _finding(filters[number], code, each, request, EXAMPLES)
        refusal.findings.append(finding)
        if code == "availability_zone.other":
            finding.note = _zones_note(filters[number], hosts.table, request)
        examined += [(number, *pair) for pair in zip(few, finding.examples, strict=True)]
    rows_examined = list(dict.fromkeys(row for _number, row, _example in examined))
    fails = failures(filters, hosts.scope, rows_examined, request)
    for number, row, example in examined:
        example.also_fails = [filters[n].name for n, _code in fails[row] if n != number]
    return refusal


def failures(
    filters: Sequence[BaseHostFilter], scope: Scope, rows: list[int], request: Any
) -> dict[int, list[Verdict]]:
    """Per row all filters that it fails and why; those that ask a server are left out."""
    found: dict[int, list[Verdict]] = {row: [] for row in rows}
    hosts = Candidates(scope, np.array(rows, dtype=np.int64))
    for number, each in enumerate(filters):
        if not is_columnar(each) or isinstance(each, TrustedFilter) or each.is_bypassed(request):
            continue
        try:
            for reason, mask in rejections(each, hosts, request):  # type: ignore[arg-type]
                for row in hosts.rows[mask].tolist():
                    found[row].append((number, reason.code))
        except errors.NovaException:  # reported where the filter was reached
            continue
    return found


def reason_text(each: BaseHostFilter, code: str) -> str:
    texts = {reason.code: reason.text for reason in getattr(each, "reasons", ())}
    return texts.get(code, "does not pass" if code == UNSPECIFIED else code)


def _finding(
    each: BaseHostFilter, code: str, hosts: Candidates, request: Any, most: int
) -> tuple[Finding, list[int]]:
    """The finding with at most so many examples, and their rows."""
    finding = Finding(each.name, code, reason_text(each, code), len(hosts))
    places = np.arange(min(most, len(hosts)))
    numbers = measured(each, code, hosts, request)
    if numbers is not None:
        places = _smallest(numbers.missing, most)
    few = hosts.take(places)
    for place, host in zip(places.tolist(), few.states(), strict=True):
        missing = None if numbers is None else float(numbers.missing[place])
        finding.wanted, found = describe(each, code, host, request)
        finding.examples.append(Example(host.host, host.nodename, found, missing))
    return finding, few.rows.tolist()


def _smallest(missing: np.ndarray, most: int) -> np.ndarray:
    if most == 1:
        return np.array([missing.argmin()])
    few = np.arange(len(missing))
    if len(missing) > most:
        few = np.argpartition(missing, most)[:most]
    return few[np.argsort(missing[few], kind="stable")]


def _zones_note(each: Any, table: HostTable, request: Any) -> str | None:
    """Note on the zones there are, if none of them is the one asked for."""
    zones = {each.default_zone}
    for aggregates in table.pools["aggregates"].every_parsed():
        zones |= aggregate_metadata.split_values(aggregates, "availability_zone")
    if request.availability_zone in zones:
        return None
    return f"there is no such zone; there are: {', '.join(sorted(zones))}"


def _wish(cause: str, hosts: Candidates, request: Any) -> tuple[str | None, str | None]:
    """The part of the request that removes hosts for *cause*, and what of it does not exist."""
    table, destination = hosts.table, request.requested_destination
    if cause == "force_hosts.other":
        return _names("force_hosts", request.force_hosts, table.rows_of_host, ignore_case=True)
    nodes = {node for _host, node in table.rows if node is not None}
    if cause == "force_nodes.other":
        return _names("force_nodes", request.force_nodes, nodes)
    if cause == "ignore_hosts.named":
        return f"ignore_hosts = {', '.join(request.ignore_hosts[:10])}", None
    if cause == "destination.other":
        host, node = destination.host, destination.node
        known = table.rows_of_host if host else nodes
        wanted, note = _names("the destination", [host or node], known)
        if host and node and note is None:
            wanted = f"{wanted}, node {node}"
        return wanted, note
    if cause == "destination.other_cell":
        return f"cell {destination.cell.uuid}", None
    return None, None


def _names(
    what: str, wanted: list[str], known: Iterable[str], *, ignore_case: bool = False
) -> tuple[str, str | None]:
    """Text of the *wanted* names, and of those that do not exist."""
    there = {name.lower() if ignore_case else name for name in known}
    missing = [name for name in wanted if (name.lower() if ignore_case else name) not in there]
    text = f"{what} = {', '.join(wanted[:10])}"
    if not missing:
        return text, None
    hint = errors.did_you_mean(missing[0], there)
    return text, f"{', '.join(missing[:10])} does not exist{hint}"
