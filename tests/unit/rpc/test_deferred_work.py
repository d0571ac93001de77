"""What waits until an answer is on its way is done then, once, whatever happens."""

from __future__ import annotations

import pytest

from scheduler.rpc.deferred_work import DeferredWork


class Failed(Exception):
    """Some error."""


def test_work_waits_for_the_answer() -> None:
    done: list[str] = []
    deferred = DeferredWork()
    with deferred.until_answered():
        deferred.defer(lambda: done.append("first"))
        deferred.defer(lambda: done.append("second"))
        assert done == []
        deferred.do()
        assert done == ["first", "second"]
        deferred.defer(lambda: done.append("too late"))
    assert done == ["first", "second", "too late"]


def test_nothing_is_lost_where_no_answer_leaves() -> None:
    done: list[str] = []
    deferred = DeferredWork()

    def fail() -> None:
        with deferred.until_answered():
            deferred.defer(lambda: done.append("it"))
            raise Failed

    with pytest.raises(Failed):
        fail()
    assert done == ["it"]


def test_one_failure_keeps_nothing_else_from_being_done(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    def fail() -> None:
        raise Failed("of some kind")

    deferred = DeferredWork()
    with deferred.until_answered():
        deferred.defer(fail)
        deferred.defer(lambda: done.append("it"))
    assert done == ["it"]
    assert "of some kind" in caplog.text


@pytest.mark.parametrize("waits", [True, False])
def test_without_a_request_or_without_greenlets_nothing_waits(waits: bool) -> None:
    done: list[str] = []
    deferred = DeferredWork(waits=waits)
    deferred.defer(lambda: done.append("outside"))
    assert done == ["outside"]
    if not waits:
        with deferred.until_answered():
            deferred.defer(lambda: done.append("inside"))
            assert done == ["outside", "inside"]
