"""What a soak is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

BOTH, BUS, ENGINE = "both", "bus", "engine"
OBJECTS, DESCRIPTORS, THREADS, ROWS = "objects", "descriptors", "threads", "rows"
#: Chains and weighers that look at everything there is.
FILTERS: Final = (
    "AvailabilityZoneFilter",
    "RamFilter",
    "DiskFilter",
    "CoreFilter",
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "AggregateInstanceExtraSpecsFilter",
    "JsonFilter",
    "DifferentHostFilter",
    "NUMATopologyFilter",
    "PciPassthroughFilter",
)
EXPIRY_SECONDS: Final = 120


def _option(default: Any, text: str, **more: Any) -> Any:
    return field(default=default, metadata={"help": text, **more})


@dataclass(frozen=True)
class Plan:
    """Everything that the command takes."""

    minutes: float = _option(10.0, "run for so long; 0: until there were enough decisions")
    decisions: int = _option(0, "run until there were so many decisions in all; 0: any number")
    least_decisions: int = _option(0, "do not end before there were so many, whatever the minutes")
    most_per_second: float = _option(0.0, "decisions in process, on average; 0: any number")
    end_file: str = _option("", "once this file is there, come to an end")
    grace_seconds: float = _option(60.0, "time for --least-decisions once --end-file is there")
    allowance: float = _option(1.0, "multiplies the growth that is allowed")
    leak: float = _option(0.0, "leak so much per request in process; it must be found")
    leak_of: str = _option(OBJECTS, "what is leaked", choices=(OBJECTS, DESCRIPTORS, THREADS, ROWS))
    seed: int = _option(1, "what is drawn is drawn from this")
    form: str = _option(BOTH, "which to run", choices=(BOTH, BUS, ENGINE))
    hosts: int = _option(240, "compute hosts, of which some come and go")
    servers: int = _option(6000, "servers that live at the same time")
    largest: int = _option(1000, "servers that the largest requests in process ask for")
    sample_seconds: float = _option(15.0, "between two looks")
    sample_requests: int = _option(0, "look in process after so many requests instead")
    share_on_bus: float = _option(0.2, "share of --decisions that the bus form is to make")
    engine_database: str = _option("", "URL of an empty database for the engine; empty: MariaDB")
    nice: int = _option(0, "give way to others by so much, once the servers of it have started")
    keep: str = _option("", "write all samples as JSON to files in this folder")


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
            "standing_results_bytes": 16 * 2**20,
            "answers_kept_servers": 5000,
            "full_refresh_interval_seconds": 1800,
            # However little of the processor is left for it, growth is what is looked for.
            "max_decision_seconds": 0,
        },
        "claims": {"expiry_seconds": EXPIRY_SECONDS},
        "explain": {
            "memory_bytes": 8 * 2**20,
            "database": True,
            "database_kept_records": 100,
        },
        "filter_scheduler": {"enabled_filters": list(FILTERS)},
    }
