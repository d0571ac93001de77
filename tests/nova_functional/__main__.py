"""Nova's own functional tests, with its scheduler and with ours in its place, test by test.

    python -m tests.nova_functional                            # all of modules.txt
    python -m tests.nova_functional test_scheduler regressions.test_bug_1671648
    python -m tests.nova_functional --only ours test_servers   # without Nova's scheduler

Results stand in ``build/nova_functional``, a line per test: a run that was stopped goes on.  Those
of Nova's scheduler are kept, those of ours are made anew for another revision.  What passes there
and fails here is run three times alone with both.  If it fails here more often, it is red.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.nova_functional import results
from tests.nova_functional.results import FAILED, NOVA, OURS, Results
from tests.servers import venvs
from tests.world import machine

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
STATE: Final = ROOT / "build" / "nova_functional"
PAGE: Final = ROOT / "docs" / "evidence" / "nova-functional.md"
PREFIX: Final = "nova.tests.functional."
MODULE_SECONDS: Final = 3600
ALONE_TIMES: Final = 3


class Runs:
    """Runs tests in processes of their own, *at_a_time* side by side."""

    def __init__(self, python: Path, found: Results, at_a_time: int) -> None:
        self._python, self._found, self._at_a_time = python, found, at_a_time

    def modules(self, mode: str, names: Sequence[str]) -> None:
        """Run the modules with the scheduler *mode*; what has a result already is left out."""
        self._all([(mode, self._found.path(mode, name), name) for name in names])

    def alone(self, tests: Sequence[str]) -> None:
        """Run each of *tests* alone with both schedulers, several times."""
        units = [
            (mode, self._found.path(mode, f"alone/{test}.{number}"), test)
            for test in tests
            for number in range(ALONE_TIMES)
            for mode in (NOVA, OURS)
        ]
        self._all([unit for unit in units if not unit[1].exists()])

    def _all(self, units: Sequence[tuple[str, Path, str]]) -> None:
        with concurrent.futures.ThreadPoolExecutor(self._at_a_time) as pool:
            for line in pool.map(lambda unit: self._run(*unit), units):
                print(line, flush=True)  # noqa: T201

    def _run(self, mode: str, path: Path, name: str) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        began, home = time.monotonic(), STATE / "home"
        home.mkdir(exist_ok=True)
        with path.with_suffix(".log").open("w", encoding="utf-8") as log:
            command = [self._python, HERE / "inside" / "worker.py", mode, path, f"{PREFIX}{name}"]
            environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(self._found.package)}
            try:
                done: object = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=home,
                    env=environment,
                    timeout=MODULE_SECONDS,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                done = "too slow"
        outcomes = results.counted(results.read(path))
        return f"{time.monotonic() - began:5.0f} s  {mode:4}  {name}: {outcomes}, ended with {done}"


def link_etc(python: Path) -> None:
    """Let Nova find ``etc/nova/api-paste.ini`` beside itself, as in its sources."""
    folder = python.parents[1]
    for packages in folder.glob("lib/python*/site-packages"):
        link = packages / "etc"
        if not link.exists():
            link.symlink_to(folder / "etc")


def install_ours(package: Path) -> None:
    """Install the project as it is now into *package*, where a run finds it to the end."""
    if not package.exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        ways = ["--no-build-isolation", "--no-deps", "--target", str(package)]
        subprocess.run([*pip, *ways, str(ROOT)], check=True)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="below nova.tests.functional")
    parser.add_argument("--only", choices=(NOVA, OURS), help="run with one scheduler, judge later")
    parser.add_argument("--at-a-time", type=int, default=2)
    parser.add_argument(
        "--page", action="store_true", help="write docs/evidence/nova-functional.md"
    )
    chosen = parser.parse_args(argv)
    names = chosen.modules or (HERE / "modules.txt").read_text(encoding="utf-8").split()
    notes = machine.notes()
    found = Results(STATE, str(notes["revision"]))
    install_ours(found.package)
    python = venvs.NOVA_FUNCTIONAL.ensure()
    link_etc(python)
    runs = Runs(python, found, chosen.at_a_time)
    for mode in (OURS, NOVA) if chosen.only is None else (chosen.only,):
        runs.modules(mode, names)
    if chosen.only is not None:
        return 0
    if silent := [each for each in names if not found.of(NOVA, [each])]:
        print(f"Without results: {' '.join(silent)}", file=sys.stderr)  # noqa: T201
        return 1
    looking_inside = results.looking_inside(HERE / "looking_inside.txt")
    doubtful = [test for test in found.regressions(names) if test not in looking_inside]
    runs.alone(doubtful)
    red = [test for test in doubtful if found.fails_more_often(test)]
    if chosen.page:
        PAGE.write_text(results.page(found, names, looking_inside, red, notes), encoding="utf-8")
    for test in red:
        print(f"{FAILED}: {test}", file=sys.stderr)  # noqa: T201
    return int(bool(red))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
