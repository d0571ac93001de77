"""What one round of one subject gives, and the metrics made of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Sample:
    """One round: *latencies* in seconds, *count* pieces of work done in *elapsed* seconds.

    *answers* are the first results, for comparison with those of other subjects; *more* are
    metrics of the subject's own.
    """

    latencies: Sequence[float]
    elapsed: float
    count: int
    answers: Sequence[Any] = ()
    more: Mapping[str, float] = field(default_factory=dict)

    def metrics(self) -> dict[str, float]:
        """Rate per second, percentiles and mean of the latencies in milliseconds, and *more*."""
        ordered = sorted(self.latencies)
        return {
            "rate": self.count / self.elapsed,
            "mean_ms": 1000 * math.fsum(ordered) / len(ordered),
            **{f"p{share}_ms": 1000 * percentile(ordered, share) for share in (50, 90, 99)},
            **self.more,
        }


class Subject(Protocol):
    """Something that is measured.  It is made with its settings and a session."""

    def warm_up(self) -> None:
        """Everything that belongs before the first round."""

    def round(self, seconds: float) -> Sample:
        """Work for about *seconds*, at least once."""

    def pids(self) -> Sequence[int]:
        """Processes of its own, to be looked at for leaks."""

    def close(self) -> None:
        """Leave nothing behind."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which *share* percent of the *ordered* ones are (nearest rank)."""
    return ordered[max(0, math.ceil(share / 100 * len(ordered)) - 1)]
