"""The long runs: faults, soak, race, fuzz, simulation, Nova, shadow, samples, packages, versions.

    python -m tests.nightly              # all
    python -m tests.nightly race soak    # some

Each is made of units, which are commands.  ``build/nightly`` notes which have passed, and their
output: a run that was stopped, or failed, goes on where it was, unless the revision is new.  Once
all units have passed, their results are written into a page of ``docs/evidence``.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.fuzz.targets import listed
from tests.world import machine, results

ROOT: Final = Path(__file__).resolve().parents[1]
STATE: Final = ROOT / "build" / "nightly"
PAGES: Final = ROOT / "docs" / "evidence"
MOST_MINUTES: Final = 60.0
FAULTS: Final = ("broker", "daemons", "database", "network", "rows", "messages")

Command = tuple[str, ...]
#: Of what ``make test`` takes samples, with what makes them all or many.
SAMPLES: Final = {
    "recorded decisions": ("tests/vectors",),
    "placements asked for and listed": ("tests/functional/test_placement_decisions.py",),
    "reloads": ("tests/functional/test_reload.py",),
    "properties": (
        *("tests/unit/filters/test_contract.py", "tests/unit/weights/test_contract.py"),
        *("tests/unit/conductor_stub/compute/test_lives.py",),
        *("tests/unit/conductor_stub/test_outcomes.py", "tests/unit/planning/test_plans.py"),
    ),
}
MANY: Final = {
    "EXAMPLES_TIMES": "30",
    "PLACEMENT_FLEETS": "50",
    "RELOADS": "100",
    "SHADOW_REQUESTS": "1000",
    "VECTORS_EVERY": "1",
}
RACE: Final[Mapping[str, Command]] = {
    "2 daemons of 2 workers": ("tests.race",),
    "4 daemons of 1 worker": (
        *("tests.race", "--requests", "3000", "--daemons", "4", "--workers", "1"),
        *("--seed", "33", "--answer-seconds", "15"),
    ),
    "on threads": ("tests.race", "--requests", "5000", "--backend", "threading"),
    "stopped, and gone back": (
        *("tests.race", "--requests", "6000", "--kill-seconds", "0"),
        *("--break-seconds", "5", "--fail-rate", "0"),
    ),
    "in Placement": (
        *("tests.race", "--claims", "placement", "--callers", "32", "--hosts", "30"),
        *("--requests", "6000", "--host-mb", "4096", "--kill-seconds", "15"),
        *("--daemon-every", "1", "--answer-seconds", "20", "--tries", "20"),
    ),
    "without claims": ("tests.race", "--requests", "3000", "--claims", "none"),
}
SIMULATION: Final[Mapping[str, Command]] = {
    "orders of events": (
        *("tests.simulation", "--points", "100000000", "--first-seed", "1000000"),
    ),
    "planted faults": ("tests.simulation", "--plants"),
}
#: A script; the other commands are modules.
_VERSIONS: Final = ".ci/test-versions"
_PYTEST: Final = ("pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider")
PACKAGES: Final[Mapping[str, Command]] = {
    each: (*_PYTEST, "-m", "packages", f"tests/packages/test_{each}.py")
    for each in ("debian", "newcomer")
}


@dataclasses.dataclass(frozen=True)
class Part:
    """One long run: its units by name, of which so many run side by side."""

    units: Mapping[str, Command]
    at_a_time: int = 1


def parts() -> Mapping[str, Part]:
    paths = sorted((ROOT / "tests" / "nova").rglob("test_*.py"))
    nova = {each.stem: (*_PYTEST, str(each.relative_to(ROOT))) for each in paths}
    return {
        "faults": Part(
            {each: (*_PYTEST, "-m", "faults", "tests/faults", "-k", f"{each}:") for each in FAULTS}
        ),
        "soak": Part(
            {
                "in process": ("tests.soak", "--form", "engine", "--minutes", "25"),
                "over the bus": ("tests.soak", "--form", "bus", "--minutes", "25"),
            },
            at_a_time=2,
        ),
        "race": Part(RACE),
        "fuzz": Part({each: ("tests.fuzz", each) for each in listed()}, at_a_time=2),
        "simulation": Part(SIMULATION),
        "shadow": Part({"beside Nova's scheduler": nova.pop("test_shadow")}),
        "nova": Part(nova),
        "nova-functional": Part({"all modules": ("tests.nova_functional", "--ours-first")}),
        "samples": Part(
            {name: (*_PYTEST, "--timeout", "3000", *paths) for name, paths in SAMPLES.items()}
        ),
        "packages": Part(PACKAGES),
        "versions": Part({each: (_VERSIONS, each) for each in ("lowest", "highest")}),
    }


class Night:
    """One part, and the notes on its units."""

    def __init__(self, name: str, part: Part, folder: Path = STATE, pages: Path = PAGES) -> None:
        self._name, self._part = name, part
        self._folder, self._page = folder / name, pages / f"{name}.md"
        self._path = folder / f"{name}.json"
        self._notes = self._read(machine.notes())
        self._processes: set[subprocess.Popen[bytes]] = set()

    def run(self, ends_at: float) -> bool:
        """Run what has not passed yet, until *ends_at*; whether all has passed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        left = [name for name in self._part.units if name not in self._notes["passed"]]
        with concurrent.futures.ThreadPoolExecutor(self._part.at_a_time) as pool:
            running = {pool.submit(self._unit, name, ends_at): name for name in left}
            try:
                for each in concurrent.futures.as_completed(running):
                    found = each.result()
                    if found is not None:
                        self._notes["passed"][running[each]] = found
                        self._write()
            except BaseException:  # told to end: so are the units, which end what they started
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(self._processes):
                    _interrupt(process)
                raise
        if len(self._notes["passed"]) < len(self._part.units):
            return False
        self._tell()
        return True

    def _read(self, notes: dict[str, Any]) -> dict[str, Any]:
        """The notes of this revision, unless all of it has passed; else new ones."""
        if self._path.exists():
            before: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
            alike = before["machine"]["revision"] == notes["revision"]
            if alike and before["passed"].keys() < self._part.units.keys():
                return before
        shutil.rmtree(self._folder, ignore_errors=True)
        return {"machine": notes, "passed": {}}

    def _write(self) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self._notes, indent=1), encoding="utf-8")
        new.replace(self._path)

    def _unit(self, name: str, ends_at: float) -> dict[str, Any] | None:
        """What a unit found, and in which time; None if it failed or there was no time for it."""
        left = ends_at - time.monotonic()
        if left <= 0:
            _print(f"{self._name}: {name}: no time is left")
            return None
        stem = self._folder / re.sub(r"\W+", "-", name)
        found, log = stem.with_suffix(".md"), stem.with_suffix(".log")
        words = self._part.units[name]
        command = list(words) if words[0] == _VERSIONS else [sys.executable, "-m", *words]
        environment = {**os.environ, **MANY, "PYTHONHASHSEED": "0", results.FILE: str(found)}
        began = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._processes.add(process)
            try:
                status: int | str = process.wait(left)
            except subprocess.TimeoutExpired:
                _interrupt(process)
                process.wait()
                status = "no time is left"
            self._processes.discard(process)
        seconds = round(time.monotonic() - began)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        _print(f"{self._name}: {name}: {seconds} s, {'passed' if status == 0 else status}")
        if status != 0:
            _print("\n".join(f"    {line}" for line in lines[-40:]))
            return None
        told = found.read_text(encoding="utf-8") if found.exists() else f"{lines[-1].strip('= ')}\n"
        return {"seconds": seconds, "found": told}

    def _tell(self) -> None:
        passed = [(name, self._notes["passed"][name]) for name in self._part.units]
        minutes = sum(each["seconds"] for _name, each in passed) / 60
        sentence = f"{machine.sentence(self._notes['machine'])} {minutes:.0f} minutes in all."
        text = f"{sentence}\n\n{_joined([(name, each['found']) for name, each in passed])}"
        page = self._page.read_text(encoding="utf-8") if self._page.exists() else ""
        self._page.parent.mkdir(parents=True, exist_ok=True)
        self._page.write_text(written(self._name, page, text), encoding="utf-8")
        _print(f"{self._name}: all {len(passed)} units have passed; see {self._page}")


def _joined(found: Sequence[tuple[str, str]]) -> str:
    """The units' texts; tables with the same head become one."""
    tables = [[line for line in text.splitlines() if line.startswith("|")] for _name, text in found]
    heads = {tuple(table[:2]) for table in tables}
    if len(heads) == 1 and heads != {()} and len(found) > 1:
        (head,) = heads
        return "\n".join([*head, *(line for table in tables for line in table[2:])]) + "\n"
    return "\n".join(f"### {name}\n\n{text}" for name, text in found)


def written(name: str, page: str, text: str) -> str:
    """*page* with *text* between its marks of that *name*, which are added at its end."""
    marks = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not marks.search(page):
        head = page.rstrip() or f"# {name.capitalize()}, last night"
        page = f"{head}\n\n<!-- begin {name} -->\n<!-- end {name} -->\n"
    return marks.sub(lambda found: f"{found[1]}{text}{found[2]}", page)


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """End a unit with its group as Ctrl-C does: pytest then ends what its tests started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run; the status is 1 if anything has not passed."""
    every = parts()
    parser = argparse.ArgumentParser(prog="python -m tests.nightly", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(every)}")
    parser.add_argument("--minutes", type=float, default=MOST_MINUTES, help="of each part at most")
    asked = parser.parse_args(argv)
    if unknown := set(asked.parts) - every.keys():
        parser.error(f"no part {', '.join(sorted(unknown))}; there are: {', '.join(every)}")
    results.end_on_sigterm()
    passed = [
        Night(name, every[name]).run(time.monotonic() + 60 * asked.minutes)
        for name in asked.parts or every
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
