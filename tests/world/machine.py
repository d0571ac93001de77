"""What the measurements were made on."""

import datetime
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

#: What runs of benchmarks write, left out of what has changed.
WRITTEN = (":(exclude,top)benchmarks/results", ":(exclude,top)docs")
PACKAGES = ("numpy", "oslo.messaging", "SQLAlchemy", "PyMySQL", "eventlet")


def notes() -> dict[str, Any]:
    """Processor, memory, system, Python, packages, revision, load, time."""
    return {
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "revision": _revision(),
        "load": [round(each, 1) for each in os.getloadavg()],
        "when": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def sentence(notes: dict[str, Any]) -> str:
    return sentences([notes])[0]


def sentences(several: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each machine and revision that something was measured on, in order."""
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for notes in sorted(several, key=lambda each: each["when"]):
        alike.setdefault(_what(notes), []).append(notes)
    return [
        f"{_range([each['when'] for each in group])}, {what}; "
        f"load before: {_range(sorted(each['load'][0] for each in group))}."
        for what, group in alike.items()
    ]


def _what(notes: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in notes["packages"].items())
    return (
        f"revision {notes['revision']}: {notes['cpus']} × {notes['processor']}, "
        f"{notes['memory_gib']} GiB, {notes['system']}, Python {notes['python']} ({packages})"
    )


def _range(ordered: Sequence[Any]) -> str:
    first, last = ordered[0], ordered[-1]
    return f"{first}" if first == last else f"{first} to {last}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _revision() -> str:
    """The commit, marked if anything differs from it but what a run itself writes."""
    changed = _git("status", "--porcelain", "--", ":/", *WRITTEN)
    return (_git("rev-parse", "--short", "HEAD") or "unknown") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
