"""One workload in one session: warm-up, then rounds in which the subjects take turns."""

import contextlib
import cProfile
import gc
import io
import logging
import pstats
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import expression, leaks, subjects
from benchmarks.sample import Sample, Subject
from benchmarks.session import NO_SERVERS, Servers, Session
from benchmarks.workload import Row, Workload
from tests.world import machine

LOG = logging.getLogger(__name__)
#: Of each list of a profile.
LINES = 30

Result = dict[str, Any]


class AnswersDiffer(AssertionError):
    """Two subjects that are compared did not do the same work."""


class Profiler:
    """Profiles the rounds of each subject in this process, and whole daemons.

    Daemons that run on threads are seen as far as their main thread goes; on eventlet all is seen.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._profiles: dict[str, cProfile.Profile] = {}

    def run(self, name: str, work: Callable[[float], Sample], seconds: float) -> Sample:
        """One round of subject *name* under the profiler."""
        profile = self._profiles.setdefault(name, cProfile.Profile())
        return profile.runcall(work, seconds)

    def report(self) -> str:
        """Per subject and daemon the functions that took the most time of their own."""
        text = io.StringIO()
        for name, profile in self._profiles.items():
            text.write(f"=== {name}\n")
            _print(pstats.Stats(profile, stream=text))
        for path in sorted(self.folder.iterdir()):
            text.write(f"=== daemon: {path.name}\n")
            _print(pstats.Stats(str(path), stream=text))
        return text.getvalue()


def _print(stats: pstats.Stats) -> None:
    stats.strip_dirs().sort_stats("tottime").print_stats(LINES)
    stats.sort_stats("cumulative").print_stats(LINES)


@dataclass
class _Running:
    """A subject that takes part, and what its rounds gave."""

    subject: Subject
    rounds: list[dict[str, float]]
    answers: Any = None


def run(
    workload: Workload, profiler: Profiler | None = None, servers: Servers = NO_SERVERS
) -> Result:
    """Measure *workload*, on the *servers* given; the result is what JSON can hold."""
    began = time.monotonic()
    notes = machine.notes()
    start = leaks.look()
    with contextlib.ExitStack() as ending:
        session = ending.enter_context(Session(profiler.folder if profiler else None, servers))
        running: dict[str, _Running] = {}
        for name, settings in workload.subjects.items():
            LOG.info("%s: %s", workload.name, name)
            subject = subjects.make(settings, session)
            ending.callback(subject.close)
            subject.warm_up()
            running[name] = _Running(subject, [])
        _take_turns(running, 0, workload.seconds, profiler)
        before = leaks.look(_pids(running))  # pools of connections are filled by now
        for number in range(1, workload.rounds):
            _take_turns(running, number, workload.seconds, profiler)
        after = leaks.look(_pids(running))
    _compare(workload, running)
    measured = {name: _by_metric(each.rounds) for name, each in running.items()}
    return {
        "workload": workload.name,
        "about": workload.about,
        "machine": notes,
        "rounds": workload.rounds,
        "seconds": workload.seconds,
        "took_seconds": round(time.monotonic() - began, 1),
        "settings": {name: dict(settings) for name, settings in workload.subjects.items()},
        "subjects": measured,
        "rows": [_row(row, measured) for row in workload.rows],
        "peak_rss_mib": after.peak_rss_mib,
        "leaks": leaks.grown(before, after) | leaks.left_behind(start),
    }


def _pids(running: Mapping[str, _Running]) -> list[int]:
    return [pid for each in running.values() for pid in each.subject.pids()]


def _take_turns(
    running: Mapping[str, _Running], number: int, seconds: float, profiler: Profiler | None
) -> None:
    """One round of every subject; each round begins with another one."""
    names = list(running)
    first = number % len(names)
    gc.collect()  # what was left behind before is not this round's
    for name in names[first:] + names[:first]:
        each = running[name]
        work: Callable[[float], Sample] = each.subject.round
        sample = profiler.run(name, work, seconds) if profiler else work(seconds)
        each.rounds.append(sample.metrics())
        each.answers = each.answers or list(sample.answers)
        LOG.debug("round %d of %s: %s", number, name, each.rounds[-1])


def _compare(workload: Workload, running: Mapping[str, _Running]) -> None:
    for together in workload.same_answers:
        answers = {name: running[name].answers for name in together}
        shortest = min(len(each) for each in answers.values())
        if len({tuple(each[:shortest]) for each in answers.values()}) > 1:
            raise AnswersDiffer(f"{workload.name}: {answers}")


def _by_metric(rounds: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [each[name] for each in rounds] for name in rounds[0]}


def _row(row: Row, measured: expression.Measured) -> Result:
    value = expression.value(row.value, measured)
    too_little = row.at_least is not None and value < row.at_least
    too_much = row.at_most is not None and value > row.at_most
    has_target = row.at_least is not None or row.at_most is not None
    return {
        "what": row.what,
        "value": value,
        "expression": row.value,
        "unit": row.unit,
        "at_least": row.at_least,
        "at_most": row.at_most,
        "met": not (too_little or too_much) if has_target else None,
    }
