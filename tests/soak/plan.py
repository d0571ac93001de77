"""What a soak is made of."""

from dataclasses import dataclass
from typing import Any, Final

from scheduler.conf.filter_scheduler import DEFAULT_FILTERS
from tests.world.results import option

BUS, ENGINE = "bus", "engine"
#: Chains and weighers that look at everything there is.
FILTERS: Final = (
    *DEFAULT_FILTERS,
    *("CoreFilter", "AggregateInstanceExtraSpecsFilter", "JsonFilter", "DifferentHostFilter"),
    *("NUMATopologyFilter", "PciPassthroughFilter"),
)
EXPIRY_SECONDS: Final = 120


@dataclass(frozen=True)
class Plan:
    form: str = option(ENGINE, "which to run", choices=(BUS, ENGINE))
    minutes: float = option(10.0, "run for so long; 0: until there were enough decisions")
    decisions: int = option(0, "run until there were so many decisions; 0: any number")
    allowance: float = option(1.0, "multiplies the growth that is allowed")
    leak: float = option(0.0, "leak so many objects per request in process; it must be found")
    seed: int = option(1, "what is drawn is drawn from this")
    hosts: int = option(240, "compute hosts, of which some come and go")
    servers: int = option(6000, "servers that live at the same time")
    largest: int = option(1000, "servers that the largest requests in process ask for")
    sample_seconds: float = option(15.0, "between two looks")
    sample_requests: int = option(0, "look in process after so many requests instead")
    keep: str = option("", "write all samples as JSON to files in this folder")

    def is_over(self, seconds: float, decisions: int) -> bool:
        """Whether so much time and work were enough."""
        if self.decisions and decisions >= self.decisions:
            return True
        return bool(self.minutes) and seconds >= 60 * self.minutes


def settings() -> dict[str, dict[str, Any]]:
    """Options by group; what is bounded by memory is bounded early, so that it shows."""
    return {
        # The clock of the engine makes steps: heartbeats come late there.
        "DEFAULT": {"periodic_fuzzy_delay": 0, "service_down_time": 180},
        "scheduler": {
            "claims": "database",
            "workers": 1,
            "periodic_task_interval": 10,
            "max_attempts": 3,
            "answers_kept_servers": 5000,
            "full_refresh_interval_seconds": 1800,
            # However little of the processor is left for it, growth is what is looked for.
            "max_decision_seconds": 0,
        },
        "claims": {"expiry_seconds": EXPIRY_SECONDS},
        "explain": {"memory_bytes": 8 * 2**20, "database": True, "database_kept_records": 100},
        "filter_scheduler": {"enabled_filters": list(FILTERS)},
    }
