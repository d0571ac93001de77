"""Runs functional tests of Nova, with its scheduler or with ours; one line of JSON per test.

    worker.py nova|ours RESULTS TEST...

Runs in an environment with Nova; TEST is the name of a package, a module, a class or a test.
"""

import importlib
import json
import os
import re
import signal
import sys
import time
import traceback
import unittest
import warnings
from typing import Any, TextIO

_ENVIRONMENT = {
    "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1",  # with threads databases are files
    "OS_STDOUT_CAPTURE": "1",
    "OS_STDERR_CAPTURE": "1",
    "OS_TEST_TIMEOUT": "240",
}
_PACKAGE = "nova.tests.functional"
_DEPTH = _PACKAGE.count(".") + 1
_MOST_TEXT = 60_000
_LOGGED = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ [A-Z]+ ")
#: A name that an older release of Nova does not have.
_LACKING = re.compile(r"No module named 'nova\.tests\.functional|^(module|type object) '")
_TELLING = re.compile(r" (WARNING|ERROR|CRITICAL) | \[scheduler\.")


def _noting(outcome: str) -> Any:
    """A method that is told of one outcome."""
    return lambda self, test, err=None, details=None: self._note(test, outcome, err, details)


class Results(unittest.TestResult):
    """Writes a line as soon as a test is over; the first outcome of a test counts."""

    def __init__(self, file: TextIO, counts: Any) -> None:
        super().__init__()
        self._file, self._counts = file, counts
        self._began, self._is_noted = 0.0, False

    def startTest(self, test: Any) -> None:  # noqa: N802
        super().startTest(test)
        self._began, self._is_noted = time.time(), False

    addSuccess = addExpectedFailure = _noting("passed")  # noqa: N815
    addError = _noting("error")  # noqa: N815
    addFailure = addUnexpectedSuccess = _noting("failed")  # noqa: N815
    addSkip = _noting("skipped")  # noqa: N815

    def _note(self, test: Any, outcome: str, err: Any, details: Any) -> None:
        if self._is_noted:  # a cleanup that fails after the test
            return
        self._is_noted = True
        is_unknown = test.id().startswith("unittest.loader.") and _LACKING.search(str(err[1]))
        if is_unknown and importlib.import_module("older").IS_OLDER:
            outcome = "skipped"
        row = {"test": test.id(), "outcome": outcome, "counts": dict(self._counts)}
        row |= {"seconds": round(time.time() - self._began, 1), "text": ""}
        if outcome in ("error", "failed"):
            row["text"] = _text(err, details)
        self._counts.clear()
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()


def _text(err: Any, details: Any) -> str:
    """The failure, and what was logged by our scheduler, or as a warning or worse."""
    if not details:
        return "".join(traceback.format_exception(*err)) if err else ""
    lines: list[str] = []
    for each in details.values():
        found = each.as_text().splitlines()
        lines += [line for line in found if not _LOGGED.match(line) or _TELLING.search(line)]
    return "\n".join(lines)[-_MOST_TEXT:]


def _left(suite: Any, done: set[str]) -> unittest.TestSuite:
    """The tests of *suite* that are not *done*."""
    tests = unittest.TestSuite()
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            tests.addTests(_left(each, done))
        elif each.id() not in done:
            tests.addTest(each)
    return tests


def _names(suite: Any) -> list[str]:
    if isinstance(suite, unittest.TestSuite):
        return [name for each in suite for name in _names(each)]
    return [suite.id()]


def _modules(name: str, folder: str) -> list[str]:
    """The modules with tests if *name* is a package, else *name*; *folder* has all."""
    path = os.path.join(folder, *name.split(".")[_DEPTH:])
    if not os.path.isdir(path):
        return [name]
    files = sorted(each for each in os.listdir(path) if each.startswith("test_"))
    return [f"{name}.{each.removesuffix('.py')}" for each in files]


def main(mode: str, path: str, names: list[str]) -> None:
    signal.signal(signal.SIGINT, lambda *_arguments: os._exit(130))  # results are written
    os.environ.update(_ENVIRONMENT)
    warnings.simplefilter("ignore")
    # Settles on threads, before anything else of Nova.
    importlib.import_module("nova.monkey_patch").patch()
    (folder,) = importlib.import_module(_PACKAGE).__path__
    __import__("older").install()
    counts: Any = {}
    if mode == "ours":
        service = __import__("service")
        service.install()
        counts = service.counts
    del sys.argv[1:]
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        done = {json.loads(line)["test"] for line in file}
        every = [each for name in names for each in _modules(name, folder)]
        suite = unittest.TestLoader().loadTestsFromNames(every)
        with open(f"{path}.names", "w", encoding="utf-8") as names_of_all:
            names_of_all.writelines(f"{name}\n" for name in _names(suite))
        _left(suite, done).run(Results(file, counts))
    os._exit(0)  # threads that tests have left may not keep it


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
