"""What waits until an answer is on its way is done then, once, whatever happens."""

from __future__ import annotations

import pytest

from scheduler.afterwards import Afterwards


class Failed(Exception):
    """Some error."""


def test_work_waits_for_the_answer() -> None:
    done: list[str] = []
    afterwards = Afterwards()
    with afterwards.answering():
        afterwards.put_off(lambda: done.append("first"))
        afterwards.put_off(lambda: done.append("second"))
        assert done == []
        afterwards.answered()
        assert done == ["first", "second"]
        afterwards.put_off(lambda: done.append("too late"))
    assert done == ["first", "second", "too late"]


def test_nothing_is_lost_where_no_answer_leaves() -> None:
    done: list[str] = []
    afterwards = Afterwards()

    def fail() -> None:
        with afterwards.answering():
            afterwards.put_off(lambda: done.append("it"))
            raise Failed

    with pytest.raises(Failed):
        fail()
    assert done == ["it"]


def test_one_failure_keeps_nothing_else_from_being_done(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    def fail() -> None:
        raise Failed("of some kind")

    afterwards = Afterwards()
    with afterwards.answering():
        afterwards.put_off(fail)
        afterwards.put_off(lambda: done.append("it"))
    assert done == ["it"]
    assert "of some kind" in caplog.text


@pytest.mark.parametrize("waits", [True, False])
def test_without_a_request_or_without_greenlets_nothing_waits(waits: bool) -> None:
    done: list[str] = []
    afterwards = Afterwards(waits=waits)
    afterwards.put_off(lambda: done.append("outside"))
    assert done == ["outside"]
    if not waits:
        with afterwards.answering():
            afterwards.put_off(lambda: done.append("inside"))
            assert done == ["outside", "inside"]
