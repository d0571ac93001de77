"""Why hosts are removed before any filter is asked, in words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.hosts.table import HostTable

#: What each cause says of a host.
TEXTS: Mapping[str, str] = {
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
class Before:
    """One cause: how many hosts, what the request says, and what is wrong with that if it shows."""

    cause: str
    removed: int
    text: str
    wanted: str | None
    note: str | None


def explain_before(record: Any, table: HostTable, request: Any) -> list[Before]:
    """Every cause in *record* why hosts were never evaluated for *request*."""
    return [
        Before(cause, removed, TEXTS.get(cause, cause), *_wish(cause, table, request))
        for cause, removed in record.never_evaluated.items()
    ]


def _wish(cause: str, table: HostTable, request: Any) -> tuple[str | None, str | None]:
    nodes = {node for _host, node in table.rows if node is not None}
    destination = request.requested_destination
    if cause == "force_hosts.other":
        return _names("force_hosts", request.force_hosts, table.rows_of_host, ignore_case=True)
    if cause == "force_nodes.other":
        return _names("force_nodes", request.force_nodes, nodes)
    if cause == "ignore_hosts.named":
        return f"ignore_hosts = {', '.join(request.ignore_hosts[:10])}", None
    if cause == "destination.other":
        wanted, note = _names("the destination", [destination.host], table.rows_of_host)
        if destination.node and note is None:
            wanted = f"{wanted}, node {destination.node}"
        return wanted, note
    if cause == "destination.other_cell":
        return f"cell {destination.cell.uuid}", None
    return None, None


def _names(
    what: str, wanted: list[str], known: Iterable[str], *, ignore_case: bool = False
) -> tuple[str, str | None]:
    """What is asked for, and which of it there is not."""
    there = {name.lower() if ignore_case else name for name in known}
    missing = [name for name in wanted if (name.lower() if ignore_case else name) not in there]
    text = f"{what} = {', '.join(wanted[:10])}"
    if not missing:
        return text, None
    close = difflib.get_close_matches(missing[0], list(there), n=3)
    hint = f" (similar names: {', '.join(close)})" if close else ""
    return text, f"{', '.join(missing[:10])} does not exist{hint}"
