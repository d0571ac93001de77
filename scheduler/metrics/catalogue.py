"""Every metric there is: name, kind, labels, and how the values of several workers become one.

Labels come from closed sets, or from the configuration: outcomes, stages, filters and the reasons
they declare, cells.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

SECONDS_BUCKETS: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds; what is above the last counts as well."""


class Kind(enum.Enum):
    """What a metric is to Prometheus, and how the workers' values are put together."""

    COUNTER = "counter"
    """The sum over all workers there ever were."""
    HISTOGRAM = "histogram"
    """Likewise, per bucket."""
    SUM = "the sum of the workers"
    MAX = "the greatest of the workers"
    MIN = "the least of the workers"
    NEWEST = "that of the worker that has read the hosts last"

    @property
    def is_gauge(self) -> bool:
        """Whether it tells of now, and so of living workers only."""
        return self not in (Kind.COUNTER, Kind.HISTOGRAM)


@dataclass(frozen=True)
class Metric:
    """One metric; *name* is without what Prometheus hangs on to the series of a histogram."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


def _metric(name: str, kind: Kind, text: str, *labels: str) -> Metric:
    return Metric(f"nova_scheduler_{name}", kind, text, labels)


# --- decisions ---------------------------------------------------------------------------

DECISIONS = _metric(
    "decisions_total",
    Kind.COUNTER,
    "Requests for hosts that were decided, by outcome: selected, or the code of the error.",
    "outcome",
)
PLACED = _metric("instances_placed_total", Kind.COUNTER, "Instances that were given a host.")
REPEATED = _metric(
    "repeated_requests_total",
    Kind.COUNTER,
    "Requests that came again and got the answer of the first.",
)
DECISION_SECONDS = _metric(
    "decision_seconds", Kind.HISTOGRAM, "From the arrival of a request to its answer."
)
STAGE_SECONDS = _metric(
    "stage_seconds",
    Kind.HISTOGRAM,
    "Of a decision, per stage: refresh, filter, weigh, claim, later_instances.",
    "stage",
)
REMOVED = _metric(
    "hosts_removed_total",
    Kind.COUNTER,
    "Hosts that a filter removed, for the first instance of each request.",
    *("filter", "reason"),
)
NOT_EVALUATED = _metric(
    "hosts_not_evaluated_total",
    Kind.COUNTER,
    "Hosts that no filter was asked about, by cause.",
    "cause",
)
CLAIMS = _metric("claims_total", Kind.COUNTER, "Claims of decided hosts, by outcome.", "outcome")
RACES_LOST = _metric(
    "claim_conflicts_total",
    Kind.COUNTER,
    "How often it was decided anew because others had claimed the host meanwhile.",
)
CLAIMS_OPEN = _metric(
    "claims_open", Kind.NEWEST, "Claims in the database that no report of a host shows yet."
)
PICKS_OPEN = _metric(
    "picks_open", Kind.SUM, "Promised hosts whose reports do not show the instance yet."
)

# --- the state that is decided on --------------------------------------------------------

STATE_AGE = _metric(
    "state_age_seconds", Kind.MAX, "Seconds since the state of the hosts was read last."
)
HOSTS = _metric(
    "hosts",
    Kind.NEWEST,
    "Compute nodes by state: up, down (not heard from in time, or forced down), disabled, "
    "without_service (nothing says that a compute service runs there).",
    "state",
)
INSTANCES = _metric("instances", Kind.NEWEST, "Instances known to be on a host.")
READ_SECONDS = _metric(
    "state_read_seconds",
    Kind.HISTOGRAM,
    "Reading what changed of the hosts (kind changes), or everything (kind full).",
    "kind",
)
READ_FAILURES = _metric(
    "state_read_failures_total", Kind.COUNTER, "Reads of the hosts that failed."
)
ROWS_READ = _metric(
    "state_rows_read_total", Kind.COUNTER, "Rows of compute nodes and instances that were read."
)
REPAIRS = _metric(
    "state_repairs_total",
    Kind.COUNTER,
    "Rows that a full read found to differ although no earlier read had shown it.",
)
CELL: Final = ("cell", "name")
CELL_UP = _metric("cell_up", Kind.MIN, "Whether the hosts of a cell are decided on.", *CELL)
CELL_READ_AT = _metric(
    "cell_read_timestamp_seconds", Kind.MIN, "When the hosts of a cell were read last.", *CELL
)
CELL_FAILURES = _metric(
    "cell_read_failures_total", Kind.COUNTER, "Reads of a cell that failed or took long.", *CELL
)

# --- the message bus ---------------------------------------------------------------------

IN_FLIGHT = _metric("requests_in_flight", Kind.SUM, "Remote calls that are being worked on.")
OLDEST = _metric(
    "oldest_request_seconds", Kind.MAX, "How long the oldest of them has been worked on."
)
CONSUMER_UP = _metric(
    "consumer_up", Kind.MIN, "Whether requests are taken from the message bus by every worker."
)
MESSAGES = _metric(
    "rpc_messages_total",
    Kind.COUNTER,
    "Requests from the message bus, by the way they were received: fast ([scheduler] "
    "rpc_fast_path), library.",
    "path",
)
REFUSED = _metric(
    "messages_refused_total",
    Kind.COUNTER,
    "Messages whose sender was told that they cannot be served, by kind of error.",
    "error",
)
UNDECODABLE = _metric(
    "messages_undecodable_total",
    Kind.COUNTER,
    "Messages that are no messages of this protocol, and were dropped.",
)
ANSWERS_DROPPED = _metric(
    "answers_dropped_total",
    Kind.COUNTER,
    "Answers that were given up because the queue of the caller did not come back.",
)
CALL_HEARTBEATS_FAILED = _metric(
    "call_heartbeats_failed_total",
    Kind.COUNTER,
    "Heartbeats to callers of long calls that could not be sent, and were tried again.",
)
NOTIFICATIONS_DROPPED = _metric(
    "notifications_dropped_total",
    Kind.COUNTER,
    "Notifications that were dropped because the bus did not take them.",
)
NOTIFICATIONS_WAITING = _metric(
    "notifications_waiting", Kind.SUM, "Notifications that wait for the bus."
)

# --- the daemon --------------------------------------------------------------------------

RELOADS = _metric(
    "reloads_total",
    Kind.COUNTER,
    "Reloads of the configuration by a worker, by outcome: applied, restart_needed (applied as far "
    "as possible), refused (the old configuration goes on).",
    "outcome",
)
RELOAD_OK = _metric(
    "last_reload_successful", Kind.MIN, "0 when the last reload was refused; else, or without, 1."
)
RELOAD_AT = _metric(
    "last_reload_timestamp_seconds", Kind.MAX, "When the configuration was reloaded last."
)
WORKERS = _metric(
    "workers",
    Kind.SUM,
    "Workers by state: configured, alive (told of themselves of late).",
    "state",
)
WORKER_STARTS = _metric(
    "worker_starts_total", Kind.COUNTER, "Workers that were started, replaced ones included."
)
REQUESTS_LOST = _metric(
    "requests_lost_total",
    Kind.COUNTER,
    "Requests that a worker had received when it died, begun or not; nobody answers them.",
)
CPU_SECONDS = _metric("cpu_seconds_total", Kind.COUNTER, "CPU time of all workers.")
MEMORY_BYTES = _metric("resident_memory_bytes", Kind.SUM, "Resident memory of all workers.")
STARTED_AT = _metric(
    "start_timestamp_seconds", Kind.MIN, "When the worker that runs longest was started."
)
BUILD_INFO = _metric(
    "build_info",
    Kind.MAX,
    "1; the labels say what runs.",
    *("version", "driver", "claims", "concurrency"),
)

CATALOGUE: Final = tuple(
    metric for metric in list(globals().values()) if isinstance(metric, Metric)
)
"""All of them, in the order above."""
BY_NAME: Final = {metric.name: metric for metric in CATALOGUE}
