"""Nova's own functional tests, with its scheduler and with ours in its place, test by test.

    python -m tests.nova_functional                            # all of modules.txt
    python -m tests.nova_functional test_scheduler regressions.test_bug_1671648
    python -m tests.nova_functional --sample                   # sample.txt, with ours alone
    python -m tests.nova_functional --ours-first               # Nova's where ours does not pass

Results stand in ``build/nova_functional``, a line per test: a run that was stopped goes on.  Those
of Nova's scheduler are kept, those of ours are made anew for another revision.  What passes there
and fails here is run three times alone with both.  If it fails here more often, it is red.  With
``--ours-first`` that is all that Nova's scheduler runs, as what passes here is not in question.
"""

import argparse
import concurrent.futures
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.nightly import written
from tests.nova_functional import environment, results
from tests.nova_functional.results import NOVA, OURS, PASSED, Results
from tests.servers import venvs
from tests.world import machine
from tests.world.results import end_on_sigterm, publish

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
STATE: Final = ROOT / "build" / "nova_functional"
PAGE: Final = ROOT / "docs" / "evidence" / "nova-functional.md"
PREFIX: Final = "nova.tests.functional."
#: Databases of tests are files, which a disk slows down.
MEMORY: Final = Path("/dev/shm")
#: A test hangs when no other has ended for so long; those after it in its module run alone.
HANG_SECONDS: Final = 600
ALONE_TIMES: Final = 3

Unit = tuple[str, Path, Sequence[str]]
"""The scheduler, the file of results, and the tests, modules or packages."""


class Runs:
    """Runs tests in processes of their own, *at_a_time* side by side."""

    def __init__(self, python: Path, found: Results, at_a_time: int) -> None:
        self._python, self._found, self._at_a_time = python, found, at_a_time
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._is_over = False

    def modules(self, mode: str, names: Sequence[str]) -> None:
        """Run the modules with the scheduler *mode*; what has a result already is left out."""
        self._all([(mode, self._found.path(mode, name), [name]) for name in names])

    def sample(self, tests: Sequence[str]) -> list[str]:
        """Run *tests* with our scheduler, as many parts as run side by side; the parts' names."""
        parts = {f"sample.{n}": tests[n :: self._at_a_time] for n in range(self._at_a_time)}
        self._all([(OURS, self._found.path(OURS, name), each) for name, each in parts.items()])
        return list(parts)

    def alone(self, tests: Sequence[str]) -> None:
        """Run each of *tests* alone with both schedulers, several times.

        Once with Nova's is enough for one that is skipped there.
        """
        self._repeat(tests, (NOVA,), 1)
        running = [each for each in tests if not self._found.is_skipped_alone(each)]
        self._repeat(running, (NOVA, OURS), ALONE_TIMES)

    def _repeat(self, tests: Sequence[str], modes: Sequence[str], times: int) -> None:
        units: list[Unit] = [
            (mode, self._found.path(mode, f"alone/{test}.{number}"), [test])
            for test in tests
            for number in range(times)
            for mode in modes
        ]
        self._all([unit for unit in units if not unit[1].exists()])

    def _all(self, units: Sequence[Unit]) -> None:
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self._at_a_time) as pool:
            running = [pool.submit(self._run, *unit) for unit in units]
            try:
                for done, each in enumerate(concurrent.futures.as_completed(running), start=1):
                    passed = f"{time.monotonic() - began:5.0f} s, {done}/{len(units)}"
                    print(f"[{passed}] {each.result()}", flush=True)  # noqa: T201
            except BaseException:  # told to end
                self._is_over = True
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(self._processes):
                    process.kill()
                raise

    def _run(self, mode: str, path: Path, names: Sequence[str]) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        began, tests = time.monotonic(), [f"{PREFIX}{name}" for name in names]
        command = [self._python, HERE / "inside" / "worker.py", mode, path, *tests]
        with (
            path.with_suffix(".log").open("w", encoding="utf-8") as log,
            tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder,
        ):
            if self._is_over:
                return ""
            own = {"HOME": folder, "TMPDIR": folder, "PYTHONPATH": str(self._found.package)}
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, **own},
            )
            self._processes.add(process)
            done = _end_of(process, path)
            self._processes.discard(process)
        outcomes = results.counted(results.read(path))
        name = path.relative_to(STATE).with_suffix("")
        return f"{name}: {time.monotonic() - began:.0f} s, {outcomes}, ended with {done}"


def _end_of(process: subprocess.Popen[bytes], path: Path) -> object:
    """The exit code of *process*, which is killed when it no longer writes results to *path*."""
    began = time.time()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(10)
        latest = path.stat().st_mtime if path.exists() else began
        if time.time() - max(latest, began) > HANG_SECONDS:
            process.kill()
            process.wait()
            return "a test that hangs"


def install_ours(package: Path) -> None:
    """Install the project as it is now into *package*, where a run finds it to the end."""
    if package.parent.name.endswith("-dirty"):  # not the same as last time
        shutil.rmtree(package.parent, ignore_errors=True)
    if not package.exists():
        shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # modules of earlier builds
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        ways = ["--no-build-isolation", "--no-deps", "--target", str(package)]
        subprocess.run([*pip, *ways, str(ROOT)], check=True)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", help="below nova.tests.functional")
    parser.add_argument("--sample", action="store_true", help="sample.txt, with ours alone")
    parser.add_argument("--release", choices=venvs.FUNCTIONAL_RELEASES, default="34", help="Nova's")
    parser.add_argument(
        "--revision", help="go on with the results, and the copy, of an earlier one"
    )
    parser.add_argument("--ours-first", action="store_true", help="Nova's only where ours fails")
    parser.add_argument("--at-a-time", type=int, default=max(2, os.cpu_count() or 1))
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    end_on_sigterm()
    chosen, notes = arguments(argv), machine.notes()
    notes["revision"] = chosen.revision or notes["revision"]
    found = Results(STATE / chosen.release, notes["revision"])
    install_ours(found.package)
    runs = Runs(environment.python(chosen.release), found, chosen.at_a_time)
    if chosen.sample:
        tests = results.lines(HERE / "sample.txt")
        units = runs.sample(tests)
        rows = found.of(OURS, units)
        doubtful = [each for each in tests if rows.get(each, {}).get("outcome") != PASSED]
        return judge(runs, found, units, doubtful, None)
    units = chosen.modules or results.modules(HERE / "modules.txt")
    for mode in [OURS] if chosen.ours_first else [OURS, NOVA]:
        runs.modules(mode, units)
    # With --ours-first, what did not come to its end is doubtful, and runs alone.
    is_known = found.has_begun if chosen.ours_first else found.has_ended
    last = OURS if chosen.ours_first else NOVA
    if unknown := [each for each in units if not is_known(last, each)]:
        print(f"Not to their end: {' '.join(unknown)}", file=sys.stderr)  # noqa: T201
        return 1
    doubtful = found.not_passed(units) if chosen.ours_first else found.regressions(units)
    return judge(runs, found, units, doubtful, notes if chosen.page else None)


def judge(
    runs: Runs,
    found: Results,
    units: Sequence[str],
    doubtful: Sequence[str],
    notes: dict[str, Any] | None,
) -> int:
    """Run what is *doubtful* alone and tell of all, on the page, too, if there are *notes* for it.

    The status is 1 if anything fails more often with ours.
    """
    inside = results.looking_inside(HERE / "looking_inside.txt")
    others = [test for test in doubtful if test not in inside]
    runs.alone(others)
    told = results.text(found, units, inside, doubtful)
    publish(told)
    if notes:
        page = PAGE.read_text(encoding="utf-8")
        told = f"{machine.sentence(notes)}\n\n{told}"
        PAGE.write_text(written("nova-functional", page, told), encoding="utf-8")
    return int(any(map(found.fails_more_often, others)))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
