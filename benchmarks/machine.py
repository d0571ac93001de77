"""What the measurements were made on."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import psutil

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
    """The notes in one line."""
    packages = ", ".join(f"{name} {version}" for name, version in notes["packages"].items())
    return (
        f"{notes['when']}, revision {notes['revision']}: {notes['cpus']} × {notes['processor']}, "
        f"{notes['memory_gib']} GiB, {notes['system']}, Python {notes['python']} ({packages}); "
        f"load before: {notes['load'][0]}."
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _revision() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"
