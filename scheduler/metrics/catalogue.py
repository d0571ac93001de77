"""Every metric; labels come from closed sets or the configuration (filters, cells)."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SECONDS_BUCKETS: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds; what is above the last counts as well."""


class Kind(enum.Enum):
    """Type of a metric in Prometheus, and how the workers' values are put together.

    Counters and histograms add up all workers there ever were; the others are gauges.
    """

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUM = "the sum of the workers"
    MAX = "the greatest of the workers"
    MIN = "the least of the workers"
    NEWEST = "that of the worker that has read the hosts last"
    ASKED = "that of the worker that was asked"

    @property
    def is_gauge(self) -> bool:
        """True when it is of now, and so of living workers only."""
        return self not in (Kind.COUNTER, Kind.HISTOGRAM)


@dataclass(frozen=True)
class Metric:
    """One metric; *name* is without what Prometheus hangs on to the series of a histogram."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def former(self) -> str | None:
        """The name that it had up to version 0.2, under which it is shown as well."""
        former = _FORMER.get(self.name.removeprefix(PREFIX))
        return former and PREFIX + former


PREFIX: Final = "nova_scheduler_"
#: Names that are the same for every program, and have no prefix.
SHARED: Final = ("process_", "python_")
_FORMER: Final = {
    "decision_duration_seconds": "decision_seconds",
    "stage_duration_seconds": "stage_seconds",
    "placement_call_duration_seconds": "placement_call_seconds",
    "state_read_duration_seconds": "state_read_seconds",
    "process_cpu_seconds_total": "cpu_seconds_total",
    "process_resident_memory_bytes": "resident_memory_bytes",
    "process_start_time_seconds": "start_timestamp_seconds",
}


def _maker(kind: Kind) -> Callable[..., Metric]:
    return lambda name, text, *labels: Metric(
        name if name.startswith(SHARED) else PREFIX + name, kind, text, labels
    )


_counter, _histogram, _sum, _highest, _lowest, _newest, _asked = map(_maker, Kind)

DECISIONS = _counter(
    "decisions_total", "Decided requests: selected, or an error's code.", "outcome"
)
PLACED = _counter("instances_placed_total", "Instances that were given a host.")
REPEATED = _counter("repeated_requests_total", "Repeated requests, which got the first answer.")
DECISION_SECONDS = _histogram(
    "decision_duration_seconds", "From the arrival of a request to its answer."
)
STAGE_SECONDS = _histogram(
    "stage_duration_seconds",
    "A decision's stages: refresh, filter, weigh, claim, later_instances.",
    "stage",
)
REMOVED = _counter(
    "hosts_removed_total", "Hosts removed for the first instance.", "filter", "reason"
)
NOT_EVALUATED = _counter("hosts_not_evaluated_total", "Hosts that no filter saw.", "cause")
CLAIMS = _counter("claims_total", "Claims of decided hosts, by outcome.", "outcome")
RACES_LOST = _counter("claim_conflicts_total", "Decisions taken anew: others claimed the host.")
CLAIMS_GONE_BACK = _counter(
    "claims_gone_back_total", "Times that the database of claims was found at an older state."
)
CLAIMS_OPEN = _newest("claims_open", "Claims in the database that no report of a host shows yet.")
PICKS_OPEN = _sum("picks_open", "Reservations that no report of their host shows yet.")

PLACEMENT_SECONDS = _histogram(
    "placement_call_duration_seconds",
    "Calls to Placement by requests: question (about a host), list, read, claim, give_back.",
    "kind",
)
PLACEMENT_REFUSALS = _counter("placement_refusals_total", "Asked-about hosts that were refused.")
PLACEMENT_MISSED = _counter("placement_unanswered_total", "Requests that Placement did not answer.")
PLACEMENT_AGE = _highest(
    "placement_learned_age_seconds", "Seconds since a worker looked at Placement's providers."
)

SHADOW_REQUESTS = _counter(
    "shadow_requests_total", "Requests that a shadow compared, by the result.", "result"
)

STATE_AGE = _highest("state_age_seconds", "Seconds since the state of the hosts was read last.")
HOSTS = _newest(
    "hosts",
    "Compute nodes by state: up, down (not heard from in time, or forced down), disabled, "
    "without_service (nothing says that a compute service runs there), "
    "incomplete (no host, name or uuid, or a bad number or time).",
    "state",
)
INSTANCES = _newest("instances", "Instances known to be on a host.")
READ_SECONDS = _histogram(
    "state_read_duration_seconds", "Reading changes of the hosts, or all.", "kind"
)
READ_FAILURES = _counter("state_read_failures_total", "Reads of the hosts that failed.")
ROWS_READ = _counter("state_rows_read_total", "Rows of compute nodes and instances that were read.")
REPAIRS = _counter("state_repairs_total", "Rows that a full read or a look back has found late.")
ZONE: Final = ("zone", "kind")
_KINDS: Final = (
    "physical, capacity (with overcommitment), used, and free, which is what servers can still get "
    "on hosts that take any. A host in two zones counts in both."
)
ZONE_HOSTS = _asked("zone_hosts", "Compute nodes by zone: all, and those that take servers.", *ZONE)
ZONE_MEMORY = _asked("zone_memory_bytes", f"Memory by zone: {_KINDS}", *ZONE)
ZONE_VCPUS = _asked("zone_vcpus", f"vCPUs by zone: {_KINDS}", *ZONE)
ZONE_DISK = _asked("zone_disk_bytes", f"Local disk by zone: {_KINDS}", *ZONE)
FITS = _asked(
    "flavor_fits",
    "Servers of a flavor that still fit, by memory, vCPUs and disk alone: filters may refuse more.",
    *("flavor", "zone"),
)
CELL: Final = ("cell", "name")
CELL_UP = _lowest("cell_up", "Whether the hosts of a cell are decided on.", *CELL)
CELL_READ_AT = _lowest("cell_read_timestamp_seconds", "When a cell's hosts were read last.", *CELL)
CELL_FAILURES = _counter("cell_read_failures_total", "Failed or slow reads of a cell.", *CELL)

IN_FLIGHT = _sum("requests_in_flight", "Remote calls that are being worked on.")
OLDEST = _highest("oldest_request_seconds", "Age of the oldest request in flight.")
CONSUMER_UP = _lowest("consumer_up", "Whether every worker takes requests from the message bus.")
MESSAGES = _counter(
    "rpc_messages_total",
    "Requests from the message bus, by the way they were received: fast ([scheduler] "
    "rpc_fast_path), library.",
    "path",
)
REFUSED = _counter("messages_refused_total", "Messages refused before any work.", "error")
UNDECODABLE = _counter("messages_undecodable_total", "Dropped messages of another protocol.")
ANSWERS_DROPPED = _counter("answers_dropped_total", "Answers whose caller's queue is gone.")
CALL_HEARTBEATS_FAILED = _counter("call_heartbeats_failed_total", "Heartbeats to callers not sent.")
NOTIFICATIONS_DROPPED = _counter("notifications_dropped_total", "Notifications the bus never got.")
NOTIFICATIONS_WAITING = _sum("notifications_waiting", "Notifications that wait for the bus.")
RECORDING_GAPS = _counter("recording_gaps_total", "Gaps in the recordings.")
RECORDING_LEFT_OUT = _counter("recording_left_out_total", "Decisions that the recordings lack.")

RELOADS = _counter(
    "reloads_total",
    "Reloads of the configuration by a worker, by outcome: applied, restart_needed (applied as far "
    "as possible), refused (the old configuration goes on).",
    "outcome",
)
RELOAD_OK = _lowest("last_reload_successful", "0 after a refused reload, else 1.")
RELOAD_AT = _highest("last_reload_timestamp_seconds", "When the configuration was reloaded last.")
WORKERS = _sum("workers", "Workers: configured, or alive (heard of late).", "state")
WORKER_STARTS = _counter("worker_starts_total", "Started workers, replacements included.")
CPU_SECONDS = _counter("process_cpu_seconds_total", "CPU time of all workers.")
MEMORY_BYTES = _sum("process_resident_memory_bytes", "Resident memory of all workers.")
VIRTUAL_BYTES = _sum("process_virtual_memory_bytes", "Virtual memory of all workers.")
OPEN_FDS = _sum("process_open_fds", "Open file descriptors of all workers.")
MAX_FDS = _sum("process_max_fds", "Most file descriptors that all workers may open.")
STARTED_AT = _lowest("process_start_time_seconds", "When the worker that runs longest was started.")
PYTHON_INFO = _highest(
    "python_info",
    "1; the labels say which Python runs.",
    *("version", "implementation", "major", "minor", "patchlevel"),
)
GC_COLLECTED = _counter(
    "python_gc_objects_collected_total", "Objects that Python's collector freed.", "generation"
)
GC_STUCK = _counter("python_gc_objects_uncollectable_total", "Uncollectable objects.", "generation")
GC_RUNS = _counter("python_gc_collections_total", "Runs of Python's collector.", "generation")
BUILD_INFO = _highest(
    "build_info", "1; the labels say what runs.", *("version", "driver", "claims", "concurrency")
)

CATALOGUE: Final = tuple(
    metric for metric in list(globals().values()) if isinstance(metric, Metric)
)
"""All of them, in the order above."""
BY_NAME: Final = {metric.name: metric for metric in CATALOGUE}
