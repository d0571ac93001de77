"""What a race consists of."""

from dataclasses import dataclass
from typing import Final

from tests.world.results import option

#: Memory of the flavors, in MiB: the smallest fits wherever anything is left.
SIZES_MB: Final = (512, 1024, 1536, 2048, 4096)


@dataclass(frozen=True)
class Plan:
    """The options of ``python -m tests.race``."""

    requests: int = option(20_000, "requests in all, repeated ones not counted")
    callers: int = option(64, "callers that wait for an answer each before they ask again")
    daemons: int = option(2, "scheduler daemons")
    workers: int = option(2, "processes of each")
    claims: str = option(
        "database", "[scheduler] claims", choices=("database", "placement", "none")
    )
    driver: str = option("filter_scheduler", "[scheduler] driver")
    backend: str = option("eventlet", "concurrency back end", choices=("eventlet", "threading"))
    hosts: int = option(40, "compute hosts")
    host_mb: int = option(16_384, "memory of each, a multiple of 512 MiB")
    kill_seconds: float = option(2.0, "seconds between two kills; 0: none")
    break_seconds: float = option(
        0.0, "a worker is stopped for so long, then the claims go back to the start; 0: neither"
    )
    daemon_every: int = option(10, "every so many kills a whole daemon dies; 0: never")
    fail_rate: float = option(0.05, "share of builds that fail")
    answer_seconds: float = option(5.0, "how long a caller waits before it asks once more")
    tries: int = option(3, "how often a request is sent before its caller gives up")
    edge_requests: int = option(400, "requests in each cycle while the fleet is full")
    settle_seconds: float = option(90.0, "how long claims may take to end at last")
    seed: int = option(1, "of the choices made here")

    @property
    def fleet_mb(self) -> int:
        return self.hosts * self.host_mb
