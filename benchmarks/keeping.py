"""The results that are kept: one file, a workload's newest result in place of its last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "results" / "results.json"


def load(path: Path = PATH) -> dict[str, Any]:
    """Results by workload; empty if none were kept."""
    if not path.exists():
        return {}
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def merge(result: dict[str, Any], order: Sequence[str], path: Path = PATH) -> dict[str, Any]:
    """Keep *result* with those of other workloads, in *order*; returns all."""
    kept = {**load(path), result["workload"]: result}
    kept = {name: kept[name] for name in order if name in kept}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return kept
