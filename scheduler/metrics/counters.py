"""Counts of one worker's decisions: a few additions per decision, none per host."""

import threading
from collections.abc import Sequence
from typing import Final

from scheduler import errors
from scheduler.claims.backend import OUTCOMES
from scheduler.engine.record import CLAIM, FILTER, LATER, REFRESH, SELECTED, WEIGH, DecisionRecord
from scheduler.hosts.refresh import ReadCost
from scheduler.metrics import catalogue
from scheduler.metrics.catalogue import Kind, Metric
from scheduler.metrics.samples import Samples

MOST_LABELS: Final = 500
"""Combinations of filter and reason with counts of their own; filters may make reasons up."""
OTHERS: Final = ("other", "other")
KINDS = FULL, CHANGES = "full", "changes"
_FROM_THE_START: Final[Sequence[tuple[Metric, tuple[str, ...]]]] = (
    *((catalogue.DECISIONS, (outcome,)) for outcome in (SELECTED, *errors.CODES)),
    *((catalogue.CLAIMS, (outcome,)) for outcome in OUTCOMES),
    *((catalogue.PLACED, ()), (catalogue.RACES_LOST, ()), (catalogue.DECISION_SECONDS, ())),
    *((catalogue.ROWS_READ, ()), (catalogue.REPAIRS, ()), (catalogue.READ_FAILURES, ())),
    *((catalogue.STAGE_SECONDS, (stage,)) for stage in (REFRESH, FILTER, WEIGH, CLAIM, LATER)),
    *((catalogue.READ_SECONDS, (kind,)) for kind in KINDS),
)
"""Metrics with labels.  What can happen is there at once, so that its first time is an increase."""


class Counters:
    """Counts and distributions of one worker since its start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples = Samples()
        self._reasons: set[tuple[str, str]] = set()
        for metric, labels in _FROM_THE_START:
            if metric.kind is Kind.HISTOGRAM:
                self._samples.histogram(metric, *labels)
            else:
                self._samples.set(metric, 0, *labels)
        self._samples.set(catalogue.RELOAD_OK, 1)

    def decided(self, record: DecisionRecord) -> None:
        with self._lock:
            samples = self._samples
            samples.add(catalogue.DECISIONS, 1, record.outcome)
            samples.add(catalogue.PLACED, len(record.chosen))
            samples.add(catalogue.RACES_LOST, record.races_lost)
            if record.claim is not None:
                samples.add(catalogue.CLAIMS, 1, record.claim)
            samples.observe(catalogue.DECISION_SECONDS, record.elapsed_ms / 1000)
            for stage, milliseconds in record.stages_ms.items():
                samples.observe(catalogue.STAGE_SECONDS, milliseconds / 1000, stage)
            if (use := record.placement) is not None:
                for kind, seconds in use.calls:
                    samples.observe(catalogue.PLACEMENT_SECONDS, seconds, kind)
                samples.add(catalogue.PLACEMENT_REFUSALS, len(use.refused))
                samples.add(catalogue.PLACEMENT_MISSED, use.is_unanswered)
            for cause, hosts in record.never_evaluated.items():
                samples.add(catalogue.NOT_EVALUATED, hosts, cause)
            for each in record.filters:
                for reason, hosts in each.removed.items():
                    labels = each.name, reason
                    if len(self._reasons) < MOST_LABELS:
                        self._reasons.add(labels)
                    elif labels not in self._reasons:
                        labels = OTHERS
                    samples.add(catalogue.REMOVED, hosts, *labels)

    def read(self, cost: ReadCost) -> None:
        with self._lock:
            samples = self._samples
            samples.add(catalogue.ROWS_READ, cost.rows)
            samples.add(catalogue.REPAIRS, cost.repairs)
            samples.add(catalogue.READ_FAILURES, cost.failed)
            if not cost.failed:
                kind = FULL if cost.full else CHANGES
                samples.observe(catalogue.READ_SECONDS, cost.seconds, kind)

    def count(self, metric: Metric, *labels: str) -> None:
        """Count one more of something rarer than decisions."""
        with self._lock:
            self._samples.add(metric, 1, *labels)

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        with self._lock:
            self._samples.set(metric, value, *labels)

    def write_to(self, samples: Samples) -> None:
        with self._lock:
            for key, value in self._samples.values.items():
                samples.values[key] = list(value) if isinstance(value, list) else value
