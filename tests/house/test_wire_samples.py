"""Every recorded message is what some test is about."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
SAMPLES = TESTS / "data" / "wire"


def test_every_sample_is_named_by_a_test() -> None:
    sources = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    unnamed = {path.stem for path in SAMPLES.glob("*.json") if path.stem not in text}
    assert not unnamed
