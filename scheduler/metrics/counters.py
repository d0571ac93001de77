"""Counts of one worker's decisions: a few additions per decision, none per host."""

from __future__ import annotations

import threading
from typing import Final

from scheduler import errors
from scheduler.claims.backend import OUTCOMES
from scheduler.engine.record import (
    CLAIM,
    FILTER,
    LATER,
    REFRESH,
    SELECTED,
    WEIGH,
    DecisionRecord,
)
from scheduler.hosts.refresh import ReadCost
from scheduler.metrics import catalogue
from scheduler.metrics.catalogue import Metric
from scheduler.metrics.samples import Distribution, Samples

MOST_LABELS: Final = 500
"""Combinations of filter and reason that are told apart; filters of others may make reasons up."""
OTHERS: Final = ("other", "other")
KINDS = FULL, CHANGES = "full", "changes"


class Counters:
    """Counts and distributions of one worker since its start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples = samples = Samples()
        self._reasons: set[tuple[str, str]] = set()
        # What can happen is there from the start, so that the first time shows as an increase.
        for outcome in (SELECTED, *errors.CODES):
            samples.set(catalogue.DECISIONS, 0, outcome)
        for outcome in OUTCOMES:
            samples.set(catalogue.CLAIMS, 0, outcome)
        for metric in _FROM_THE_START:
            samples.set(metric, 0)
        samples.set(catalogue.RELOAD_OK, 1)
        samples.distribution(catalogue.DECISION_SECONDS)
        for stage in (REFRESH, FILTER, WEIGH, CLAIM, LATER):
            samples.distribution(catalogue.STAGE_SECONDS, stage)
        for kind in KINDS:
            samples.distribution(catalogue.READ_SECONDS, kind)

    def decided(self, record: DecisionRecord) -> None:
        """Count a finished decision."""
        with self._lock:
            samples = self._samples
            samples.add(catalogue.DECISIONS, 1, record.outcome)
            samples.add(catalogue.PLACED, len(record.chosen))
            samples.add(catalogue.RACES_LOST, record.races_lost)
            if record.claim is not None:
                samples.add(catalogue.CLAIMS, 1, record.claim)
            samples.distribution(catalogue.DECISION_SECONDS).observe(record.elapsed_ms / 1000)
            for stage, milliseconds in record.stages_ms.items():
                samples.distribution(catalogue.STAGE_SECONDS, stage).observe(milliseconds / 1000)
            for cause, hosts in record.never_evaluated.items():
                samples.add(catalogue.NOT_EVALUATED, hosts, cause)
            for each in record.filters:
                for reason, hosts in each.removed.items():
                    samples.add(catalogue.REMOVED, hosts, *self._labels(each.name, reason))

    def read(self, cost: ReadCost) -> None:
        """Count a read of the hosts."""
        with self._lock:
            samples = self._samples
            samples.add(catalogue.ROWS_READ, cost.rows)
            samples.add(catalogue.REPAIRS, cost.repairs)
            samples.add(catalogue.READ_FAILURES, cost.failed)
            if not cost.failed:
                kind = FULL if cost.full else CHANGES
                samples.distribution(catalogue.READ_SECONDS, kind).observe(cost.seconds)

    def count(self, metric: Metric, *labels: str) -> None:
        """Count one more of something rarer than decisions."""
        with self._lock:
            self._samples.add(metric, 1, *labels)

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Remember a value that changes now and then."""
        with self._lock:
            self._samples.set(metric, value, *labels)

    def write_to(self, samples: Samples) -> None:
        """Put everything into *samples*."""
        with self._lock:
            samples.values.update(self._samples.values)
            for key, each in self._samples.distributions.items():
                samples.distributions[key] = Distribution(list(each.counts), each.total)

    def _labels(self, name: str, reason: str) -> tuple[str, str]:
        labels = name, reason
        if labels not in self._reasons and len(self._reasons) >= MOST_LABELS:
            return OTHERS
        self._reasons.add(labels)
        return labels


_FROM_THE_START: Final = (
    *(catalogue.PLACED, catalogue.RACES_LOST),
    *(catalogue.ROWS_READ, catalogue.REPAIRS, catalogue.READ_FAILURES),
)
