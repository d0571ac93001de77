"""What one worker counts while it decides: a few additions per decision, none per host."""

from __future__ import annotations

import bisect
import threading
from typing import Final

from scheduler import errors
from scheduler.claims.backend import OUTCOMES
from scheduler.engine import record as told
from scheduler.engine.record import DecisionRecord
from scheduler.hosts.refresh import ReadCost
from scheduler.metrics import catalogue
from scheduler.metrics.catalogue import SECONDS_BUCKETS, Metric
from scheduler.metrics.samples import Distribution, Labels, Samples

MOST_LABELS: Final = 500
"""Combinations of filter and reason that are told apart; filters of others may make reasons up."""
OTHERS: Final = ("other", "other")
STAGES: Final = (told.REFRESH, told.FILTER, told.WEIGH, told.CLAIM, told.LATER)
FULL, CHANGES = "full", "changes"


class Tally:
    """Counts and distributions of one worker since its start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # What can happen is there from the start, so that the first time shows as an increase.
        self._decisions = dict.fromkeys((told.SELECTED, *errors.CODES), 0)
        self._removed: dict[tuple[str, str], int] = {}
        self._not_evaluated: dict[str, int] = {}
        self._claims = dict.fromkeys(OUTCOMES, 0)
        self._placed = 0
        self._races_lost = 0
        self._decision_seconds = Distribution()
        self._stage_seconds = {stage: Distribution() for stage in STAGES}
        self._reads = {kind: Distribution() for kind in (FULL, CHANGES)}
        self._rows_read = self._repairs = self._failed_reads = 0
        self._others: dict[tuple[str, Labels], float] = {}
        self.set(catalogue.RELOAD_OK, 1)

    def decided(self, record: DecisionRecord) -> None:
        """Count a finished decision."""
        with self._lock:
            _count(self._decisions, record.outcome)
            self._placed += len(record.chosen)
            self._races_lost += record.races_lost
            if record.claim is not None:
                _count(self._claims, record.claim)
            _observe(self._decision_seconds, record.elapsed_ms / 1000)
            for stage, milliseconds in record.stages_ms.items():
                distribution = self._stage_seconds.get(stage)
                if distribution is None:
                    distribution = self._stage_seconds[stage] = Distribution()
                _observe(distribution, milliseconds / 1000)
            for cause, hosts in record.never_evaluated.items():
                _count(self._not_evaluated, cause, hosts)
            for each in record.filters:
                for reason, hosts in each.removed.items():
                    self._note_removed((each.name, reason), hosts)

    def read(self, cost: ReadCost) -> None:
        """Count a read of the hosts."""
        with self._lock:
            self._rows_read += cost.rows
            self._repairs += cost.repairs
            self._failed_reads += cost.failed
            if not cost.failed:
                _observe(self._reads[FULL if cost.full else CHANGES], cost.seconds)

    def count(self, metric: Metric, *labels: str) -> None:
        """Count one more of something rarer than decisions."""
        key = metric.name, labels
        with self._lock:
            self._others[key] = self._others.get(key, 0) + 1

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Remember a value that changes now and then."""
        with self._lock:
            self._others[metric.name, labels] = value

    @property
    def outcomes(self) -> dict[str, int]:
        """Decisions by outcome so far."""
        with self._lock:
            return dict(self._decisions)

    @property
    def removed(self) -> dict[tuple[str, str], int]:
        """Hosts removed so far, by filter and reason."""
        with self._lock:
            return dict(self._removed)

    def write_to(self, samples: Samples) -> None:
        """Put everything into *samples*."""
        with self._lock:
            samples.values.update(self._others)
            samples.set(catalogue.PLACED, self._placed)
            samples.set(catalogue.RACES_LOST, self._races_lost)
            for outcome, count in self._decisions.items():
                samples.set(catalogue.DECISIONS, count, outcome)
            for cause, hosts in self._not_evaluated.items():
                samples.set(catalogue.NOT_EVALUATED, hosts, cause)
            for outcome, count in self._claims.items():
                samples.set(catalogue.CLAIMS, count, outcome)
            for (name, reason), hosts in self._removed.items():
                samples.set(catalogue.REMOVED, hosts, name, reason)
            samples.set(catalogue.ROWS_READ, self._rows_read)
            samples.set(catalogue.REPAIRS, self._repairs)
            samples.set(catalogue.READ_FAILURES, self._failed_reads)
            for kind, distribution in self._reads.items():
                _copy(distribution, samples, catalogue.READ_SECONDS, kind)
            _copy(self._decision_seconds, samples, catalogue.DECISION_SECONDS)
            for stage, distribution in self._stage_seconds.items():
                _copy(distribution, samples, catalogue.STAGE_SECONDS, stage)

    def _note_removed(self, key: tuple[str, str], hosts: int) -> None:
        if key not in self._removed and len(self._removed) >= MOST_LABELS:
            key = OTHERS
        self._removed[key] = self._removed.get(key, 0) + hosts


def _count(counts: dict[str, int], key: str, more: int = 1) -> None:
    counts[key] = counts.get(key, 0) + more


def _observe(distribution: Distribution, seconds: float) -> None:
    distribution.counts[bisect.bisect_left(SECONDS_BUCKETS, seconds)] += 1
    distribution.total += seconds


def _copy(distribution: Distribution, samples: Samples, metric: Metric, *labels: str) -> None:
    copied = Distribution(list(distribution.counts), distribution.total)
    samples.distributions[metric.name, labels] = copied
