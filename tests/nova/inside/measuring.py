"""How long Nova's own HostManager takes over requests, for the comparisons in ``benchmarks``."""

import time
from collections.abc import Sequence
from typing import Any

from nova import objects
from nova.objects import base
from nova.scheduler import host_manager

from tests.nova.inside import contexts


class QuietStart(host_manager.HostManager):  # type: ignore[misc]
    """Nova's, without the thread that looks up all instances when it starts."""

    def _init_instance_info(self, computes_by_cell: Any = None) -> None:
        self._instance_info: dict[str, Any] = {}


class Measured:
    """A host manager whose compute hosts have all told it of their instances."""

    def __init__(self, specs: Sequence[dict[str, Any]]) -> None:
        self.context = contexts.admin()
        self.manager: Any = QuietStart()
        decode = base.NovaObjectSerializer().deserialize_entity
        self.specs = [decode(self.context, spec) for spec in specs]
        self.states: list[Any] = []

    def read(self) -> None:
        """Read all hosts and build their states."""
        found = self.manager.get_host_states_by_uuids(self.context, None, None)
        self.states = list(found)

    def hear_of_instances(self) -> None:
        """Every host has told of its instances, and none has any; else Nova asks the database.

        What it keeps is set at once: each host would have to tell twice, over the bus.
        """
        for mapping in self.manager.enabled_cells:
            with contexts.inside(mapping) as targeted:
                for compute in objects.ComputeNodeList.get_all(targeted):
                    told = {"instances": {}, "updated": True}
                    self.manager._instance_info[compute.host] = told

    def sorted_hosts(self, spec: Any) -> tuple[list[Any], float]:
        """Filters and weighers; best first, and when the filters were done."""
        passed = list(self.manager.get_filtered_hosts(self.states, spec))
        filtered_at = time.perf_counter()
        return (self.manager.get_weighed_hosts(passed, spec) if passed else []), filtered_at


_measured: list[Measured] = []


def prepare(specs: Sequence[dict[str, Any]]) -> int:
    """Start a host manager and take the requests; returns how many hosts there are."""
    measured = Measured(specs)
    measured.hear_of_instances()
    measured.read()
    _measured[:] = [measured]
    return len(measured.states)


def decide(number: int, reads: bool) -> dict[str, Any]:
    """Decide request *number*; seconds for the states (if it *reads* them), filters, weighers."""
    (measured,) = _measured
    spec = measured.specs[number % len(measured.specs)]
    began = time.perf_counter()
    if reads:
        measured.read()
    read_at = time.perf_counter()
    for state in measured.states:
        state.allocation_candidates = [{"mappings": {}}]  # Placement's part, not measured
    filtering_at = time.perf_counter()
    weighed, filtered_at = measured.sorted_hosts(spec)
    ended = time.perf_counter()
    return {
        "states": read_at - began,
        "filters": filtered_at - filtering_at,
        "weighers": ended - filtered_at,
        "best": weighed[0].obj.host if weighed else None,
    }
