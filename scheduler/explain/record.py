"""What one decision leaves behind: enough to say why, cheap enough to keep for each.

Counts are of hosts.  For the first instance the counts per (filter, reason), the hosts removed
before any filter and the hosts left always add up to the hosts considered.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.filters.chain import FilterCount


@dataclass(slots=True)
class DecisionRecord:
    """One request's way through the scheduler."""

    request_id: str | None
    instance_uuids: tuple[str, ...]
    num_instances: int
    seed: int
    hosts_considered: int = 0
    removed_before_filters: dict[str, int] = field(default_factory=dict)
    #: Counts of the first instance's run, in chain order; empty where forcing skipped them.
    filters: list[FilterCount] = field(default_factory=list)
    #: Host and node per instance, in order; empty when the request failed.
    chosen: list[tuple[str, str | None]] = field(default_factory=list)
    placed_before_failure: int = 0
    #: Age of the state decided on, in seconds; None when nothing was ever read.
    state_age_seconds: float | None = None
    #: uuids of the cells whose hosts were left out because they did not answer.
    cells_left_out: tuple[str, ...] = ()
    elapsed_ms: float = 0.0
    failure: str | None = None

    @property
    def hosts_left(self) -> int:
        """Hosts left for the first instance after everything."""
        if self.filters:
            return self.filters[-1].end
        return self.hosts_considered - sum(self.removed_before_filters.values())
