"""Narrowing the hosts before any filter: destination, ignored and forced hosts and nodes.

Reference page filters, section 4.  Host names of the ignore and force lists compare without
case, nodes and the requested destination exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging

from scheduler import semantics
from scheduler.hosts.candidates import Candidates
from scheduler.semantics import Semantics

LOG = logging.getLogger(__name__)

#: The scheduler hint with which Nova asks for a check of a host instead of a placement.
CHECK_TYPE_HINT = "_nova_check_type"


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is left; ``skip_filters`` when forcing decided alone; hosts removed per reason code."""

    hosts: Candidates
    skip_filters: bool
    removed: dict[str, int]


def narrow(hosts: Candidates, request: Any, chosen: Semantics = semantics.CURRENT) -> Narrowed:
    """Apply cell, destination, ignore and force lists of *request*, in that order.

    A disabled cell takes no request but those that ask for it (page database, section 7).

    The *chosen* semantics say which nodes a destination without a node means.
    """
    removed: dict[str, int] = {}

    destination = request.requested_destination
    cell = None
    if destination is not None and not destination.allow_cross_cell_move:
        cell = destination.cell
    if destination is not None and not destination.host:
        destination = None

    def at_destination(hosts: Candidates, wanted: Any) -> Candidates:
        return _at_destination(hosts, wanted, chosen)

    disabled = (
        None if cell else {uuid for uuid, is_disabled in hosts.table.cells.items() if is_disabled}
    )
    steps: tuple[tuple[str, Any, Callable[[Candidates, Any], Candidates]], ...] = (
        ("cell.disabled", disabled, _not_in_cells),
        ("destination.other_cell", cell, _in_cell),
        ("destination.other", destination, at_destination),
        ("ignore_hosts.named", request.ignore_hosts, _without_ignored),
        ("force_hosts.other", request.force_hosts, _forced_hosts),
        ("force_nodes.other", request.force_nodes, _forced_nodes),
    )
    for code, wanted, step in steps:
        if not wanted:
            continue
        left = step(hosts, wanted)
        if len(left) != len(hosts):
            removed[code] = len(hosts) - len(left)
        hosts = left
    forced = bool(request.force_hosts or request.force_nodes)
    checking = bool((request.scheduler_hints or {}).get(CHECK_TYPE_HINT))
    return Narrowed(hosts, forced and not checking, removed)


def has_group(request: Any, policy: str) -> bool:
    """Whether the request is for a server of a group with this policy."""
    group = request.instance_group
    return group is not None and group.policy == policy


def _names(hosts: Candidates, column: str) -> str:
    return ", ".join(str(hosts.table.value(row, column)) for row in hosts.rows.tolist())


def _not_in_cells(hosts: Candidates, cells: set[str]) -> Candidates:
    return hosts.take(~hosts.having("cell_uuid", cells))


def _in_cell(hosts: Candidates, cell: Any) -> Candidates:
    """The hosts of *cell*, also if it is disabled; of an undivided fleet all."""
    if not hosts.table.cells:
        return hosts
    return hosts.take(hosts.having("cell_uuid", (cell.uuid,)))


def _at_destination(hosts: Candidates, destination: Any, chosen: Semantics) -> Candidates:
    host, node = destination.host, destination.node
    left = hosts.take(hosts.named([host]))
    left = left.take(left.per_value("nodename", lambda n: chosen.destination_node(node, n)))
    if len(left):
        LOG.info("Host filter only checking host %s and node %s", host, node)
    else:
        LOG.info("No hosts matched due to not matching requested destination (%s, %s)", host, node)
    return left


def _without_ignored(hosts: Candidates, names: list[str]) -> Candidates:
    spelled = {name.lower(): name for name in names}
    ignored = hosts.named(hosts.table.spellings(spelled))
    dropped = [spelled[state.host.lower()] for state in hosts.take(ignored)]
    LOG.info("Host filter ignoring hosts: %s", ", ".join(dropped))
    return hosts.take(~ignored)


def _forced_hosts(hosts: Candidates, names: list[str]) -> Candidates:
    wanted = {name.lower() for name in names}
    left = hosts.take(hosts.named(hosts.table.spellings(wanted)))
    if len(left):
        LOG.info("Host filter forcing available hosts to %s", _names(left, "host"))
    else:
        LOG.info(
            "No hosts matched due to not matching 'force_hosts' value of '%s'", ", ".join(names)
        )
    return left


def _forced_nodes(hosts: Candidates, names: list[str]) -> Candidates:
    left = hosts.take(hosts.having("nodename", names))
    if len(left):
        LOG.info("Host filter forcing available nodes to %s", _names(left, "nodename"))
    else:
        LOG.info(
            "No nodes matched due to not matching 'force_nodes' value of '%s'", ", ".join(names)
        )
    return left
