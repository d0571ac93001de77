"""Ratios between subjects stay within three times of what was recorded."""

from __future__ import annotations

import pytest

from benchmarks import held, workload

HELD = {name: small for name in workload.names() if (small := workload.load(name).at_small_size())}
WITHOUT_SERVERS = [name for name, small in HELD.items() if not small.needs_servers]


def test_every_held_ratio_was_recorded() -> None:
    wanted = {name: {row.what for row in workload.load(name).rows if row.hold} for name in HELD}
    assert {name: set(ratios) for name, ratios in held.recorded().items()} == wanted


@pytest.mark.parametrize("name", WITHOUT_SERVERS)
def test_nothing_has_collapsed(name: str) -> None:
    assert held.collapsed_twice(name) == {}


@pytest.mark.parametrize(
    ("what", "before", "now", "is_collapse"),
    [
        ("against row by row", 30.0, 10.5, False),
        ("against row by row", 30.0, 9.5, True),
        ("against row by row", 30.0, 300.0, False),
        ("impossible request to a possible one", 0.5, 1.4, False),
        ("impossible request to a possible one", 0.5, 1.6, True),
        ("impossible request to a possible one", 0.1, 0.9, False),  # it still meets its target
    ],
)
def test_three_times_worse_is_a_collapse(
    what: str, before: float, now: float, is_collapse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "recorded", lambda: {"decision": {what: before}})
    assert bool(held.collapsed("decision", {what: now})) is is_collapse
