"""A real Nova in a virtual environment of its own, made once and kept.

``python -m tests.nova.environment`` makes it if it is not there (or made from other constraints)
and prints the path of its Python.  Only the standard library is needed here.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CONSTRAINTS = Path(__file__).with_name("constraints.txt")
#: Names the folder, so that several checkouts can share one environment.
VARIABLE = "NOVA_VENV"
#: PyMySQL is no dependency of Nova's, but its driver for MariaDB here.
PACKAGES = ("nova", "PyMySQL")

_STAMP = "made-from"


class NotAvailable(Exception):
    """The environment is not there and cannot be made, for the reason in the text."""


def folder() -> Path:
    """Where the environment is, or will be."""
    return Path(os.environ.get(VARIABLE) or CHECKOUT / ".venv-nova")


def fingerprint() -> str:
    """What the environment depends on: the exact versions, and the Python below it."""
    digest = hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest()
    return f"{digest} {sys.version_info.major}.{sys.version_info.minor}\n"


def is_made() -> bool:
    """Whether the environment is there, complete and from these constraints."""
    stamp = folder() / _STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == fingerprint()


def ensure() -> Path:
    """Make the environment unless :func:`is_made`; returns its Python.

    Raises NotAvailable with pip's last lines when the packages cannot be had.
    """
    with _only_one():
        if not is_made():
            _make()
    return folder() / "bin" / "python"


@contextlib.contextmanager
def _only_one() -> Iterator[None]:
    """Keep other processes from making the same environment at the same time."""
    folder().parent.mkdir(parents=True, exist_ok=True)
    with folder().with_name(f"{folder().name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make() -> None:
    shutil.rmtree(folder(), ignore_errors=True)
    venv.create(folder(), with_pip=True)
    pip = [str(folder() / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--quiet", "-c", str(CONSTRAINTS), *PACKAGES],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        wrong = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NotAvailable(f"pip cannot install {PACKAGES}: {' '.join(wrong[-2:]) or done.stderr}")
    (folder() / _STAMP).write_text(fingerprint(), encoding="utf-8")


if __name__ == "__main__":
    print(ensure())  # noqa: T201 - the path is what the caller asked for
