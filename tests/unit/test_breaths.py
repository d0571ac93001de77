"""Long computations let the rest of the process run now and then."""

from __future__ import annotations

import time

import pytest

from scheduler.concurrency import Breaths


@pytest.mark.parametrize(("seconds", "is_taken"), [(0.0, True), (3600.0, False)])
def test_a_breath_is_taken_when_it_is_due(
    monkeypatch: pytest.MonkeyPatch, seconds: float, is_taken: bool
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    breaths = Breaths(seconds)
    assert list(breaths.between("ab")) == ["a", "b"]
    breaths.take()
    assert slept == ([0, 0, 0] if is_taken else [])
