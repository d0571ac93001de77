"""One run of mutmut over the modules of a room, in a folder of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name, orig_function_and_class_names_from_key

from tests.mutation.results import Outcome, Survivor
from tests.mutation.rooms import Room, drawn

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/mutation"
INTERRUPTED = "not checked"
"""The status of mutants that were still to be tried when somebody interrupted mutmut."""
COPIED = ("scheduler", "conductor_stub", "tests", "benchmarks", "docs", "etc", "setup.cfg")


def run(room: Room, modules: list[str], before: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Try the mutants of *modules*; what became of them, per module.

    A module whose text is that of an outcome of *before* has only its survivors tried again.
    Raises RuntimeError, with the end of mutmut's output, if the tests fail without any mutant.
    """
    begun = {module: _begun(room, module, before.get(module)) for module in modules}
    folder = _made(room, modules)
    names = [each.name for outcome in begun.values() for each in outcome.survivors]
    if names:
        _mutmut(folder, names)
    with _changed_folder(folder):
        return {module: _finished(module, outcome) for module, outcome in begun.items()}


def _begun(room: Room, module: str, before: Outcome | None) -> Outcome:
    """An outcome in which all mutants that are to be tried still survive."""
    source = (ROOT / module).read_text(encoding="utf-8")
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    if before is not None and before.digest == digest:
        return before
    with _changed_folder(ROOT):
        every = mutate_file_contents(module, source).mutant_names
    names = [get_mutant_name(Path(module), name) for name in every]
    tried = drawn(module, names, room.each)
    alive = [Survivor(name, "", "", "") for name in tried]
    return Outcome(room.name, digest, len(names), len(tried), 0, 0, alive)


def _made(room: Room, modules: list[str]) -> Path:
    folder = WORK / room.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in COPIED:
        (folder / name).symlink_to(ROOT / name)
    own = {"only_mutate": modules, "pytest_add_cli_args_test_selection": list(room.tests)}
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in own.items()]
    shared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    heading = "[tool.mutmut]\n"
    text = shared.replace(heading, heading + "".join(lines))
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def _mutmut(folder: Path, names: list[str]) -> None:
    program = Path(sys.executable).with_name("mutmut")
    log = folder / "run.log"
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [program, "run", "--max-children", str(os.cpu_count()), *names],
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"see {log}:\n{log.read_text(encoding='utf-8')[-2000:]}")


def _finished(module: str, begun: Outcome) -> Outcome:
    if not begun.survivors:
        return begun
    kept = Path("mutants") / f"{module}.meta"
    codes = json.loads(kept.read_text(encoding="utf-8"))["exit_code_by_key"]
    statuses = {each.name: status_by_exit_code[codes[each.name]] for each in begun.survivors}
    counts = Counter(statuses.values())
    return replace(
        begun,
        tried=begun.tried - counts[INTERRUPTED],
        killed=begun.killed + counts["killed"],
        timeout=begun.timeout + counts["timeout"],
        survivors=[
            _survivor(module, name, status)
            for name, status in statuses.items()
            if status not in ("killed", "timeout", INTERRUPTED)
        ],
    )


def _survivor(module: str, name: str, status: str) -> Survivor:
    function, cls = orig_function_and_class_names_from_key(name)
    lines = get_diff_for_mutant(name, path=module).splitlines()[3:]
    was, becomes = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    where = f"{cls}.{function}" if cls else function
    return Survivor(name, where, was, becomes, status == "no tests")


@contextmanager
def _changed_folder(folder: Path) -> Iterator[None]:
    """mutmut finds its configuration and results below the current folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
