"""What the measurements were made on, in words."""

from __future__ import annotations

from tests.world import machine


def notes(when: str, revision: str, load: float) -> dict[str, object]:
    return {**machine.notes(), "when": when, "revision": revision, "load": [load, 0.0, 0.0]}


def test_one_line_for_what_was_measured_on_the_same():
    several = [
        notes("2026-01-01 10:30 UTC", "abc", 1.5),
        notes("2026-01-01 10:00 UTC", "abc", 0.5),
        notes("2026-01-02 09:00 UTC", "def", 0.1),
    ]
    first, second = machine.sentences(several)
    assert first.startswith("2026-01-01 10:00 UTC to 2026-01-01 10:30 UTC, revision abc: ")
    assert first.endswith("; load before: 0.5 to 1.5.")
    assert second.startswith("2026-01-02 09:00 UTC, revision def: ")
    assert second.endswith("; load before: 0.1.")
    assert machine.sentence(several[2]) == second


def test_what_a_run_writes_does_not_change_the_revision(monkeypatch):
    asked = []
    monkeypatch.setattr(machine, "_git", lambda *words: asked.append(words) or "")
    assert machine.notes()["revision"] == "unknown"
    assert asked[0][-2:] == machine.WRITTEN
    monkeypatch.setattr(machine, "_git", lambda *words: "M x" if words[0] == "status" else "abc")
    assert machine.notes()["revision"] == "abc-dirty"
