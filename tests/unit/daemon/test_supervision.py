"""What the master learns of its workers' starts."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from scheduler.daemon.supervision import Supervision


@pytest.fixture
def terms() -> Iterator[list[int]]:
    """The SIGTERMs that this process got."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    before = signal.signal(signal.SIGTERM, note)
    yield received
    signal.signal(signal.SIGTERM, before)


def in_a_worker(work: Callable[[], None]) -> None:
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0


@pytest.mark.parametrize(
    ("events", "has_failed"),
    [
        (["worker_started"], False),
        (["worker_failed"], True),
        (["worker_started", "worker_failed"], False),
        (["worker_failed", "worker_failed"], True),
    ],
)
def test_only_a_failed_first_start_ends_the_daemon(
    terms: list[int], events: list[str], has_failed: bool
) -> None:
    supervision = Supervision()

    for event in events:
        in_a_worker(getattr(supervision, event))

    assert supervision.has_failed is has_failed
    assert len(terms) == int(has_failed)  # a second one would kill the master


def test_a_service_without_workers_is_not_signalled(terms: list[int]) -> None:
    supervision = Supervision()
    supervision.worker_failed()
    assert supervision.has_failed
    assert terms == []
