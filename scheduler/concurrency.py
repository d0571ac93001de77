"""The one module that knows whether greenlets or threads run.

The back end must be chosen and, for eventlet, the standard library patched, before
``oslo_messaging`` is imported anywhere (reference page service, section 11).  The entry points
in ``cmd`` therefore import only this module and hand the name of the module that does the work
to :func:`run`.
"""

from __future__ import annotations

import configparser
import importlib
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")

#: How long code that computes may keep everything else in its process waiting, under eventlet.
BREATH_SECONDS = 0.05
#: How often the others get their turn: one to be told, one to come.
TURNS = 2

ENVIRONMENT_VARIABLE = "OS_NOVA_DISABLE_EVENTLET_PATCHING"
OPTION = "concurrency_backend"
EVENTLET = "eventlet"
THREADING = "threading"


def choose(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """Name the back end: environment first, then ``[DEFAULT] concurrency_backend``, else eventlet.

    Only the files named by ``--config-file`` and ``--config-dir`` are looked at, as Nova does.
    A value that is none of the option's choices counts as ``auto`` here; its own check names it
    when the configuration is parsed.
    """
    value = environ.get(ENVIRONMENT_VARIABLE, "").strip().lower()
    if value:
        return THREADING if value in ("1", "true", "yes") else EVENTLET
    configured = _option_from_files(argv) or environ.get("OS_DEFAULT__CONCURRENCY_BACKEND", "auto")
    return THREADING if configured == THREADING else EVENTLET


def _option_from_files(argv: Sequence[str]) -> str | None:
    found = None
    for path in named_files(argv):
        parser = configparser.RawConfigParser(strict=False, interpolation=None)
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # the real parser reports it with file and line
        found = parser.defaults().get(OPTION, found)
    return found.strip().strip("\"'").lower() if found else None


def named_files(argv: Sequence[str]) -> list[str]:
    """The configuration files that a command line names, in the order they are read."""
    files: list[str] = []
    words = iter(argv)
    for word in words:
        name, separator, value = word.partition("=")
        if name not in ("--config-file", "--config-dir"):
            continue
        value = value if separator else next(words, "")
        if name == "--config-file":
            files.append(value)
        else:
            files.extend(str(path) for path in sorted(pathlib.Path(value).glob("*.conf")))
    return files


def activate(backend: str) -> None:
    """Patch the standard library if *backend* is eventlet, and fix oslo.service's back end."""
    # Whatever imports eventlet first, also with threads, announces that it is in bugfix mode.
    warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
    if backend == EVENTLET:
        importlib.import_module("eventlet").monkey_patch(os=False)
        # psycopg's own way of waiting for PostgreSQL would stop every greenlet, also the one
        # that holds the lock being waited for.
        os.environ.setdefault("PSYCOPG_WAIT_FUNC", "wait_selector")
    service_backend = importlib.import_module("oslo_service.backend")
    service_backend.init_backend(service_backend.BackendType(backend))


def current() -> str:
    """``eventlet`` or ``threading``, as fixed by :func:`activate`."""
    service_backend = importlib.import_module("oslo_service.backend")
    return str(service_backend.get_backend_type().value)


def run(module: str, argv: Sequence[str]) -> int:
    """Choose and activate the back end, then import *module* and return ``module.main(argv)``."""
    activate(choose(argv, os.environ))
    return int(importlib.import_module(module).main(list(argv)) or 0)


class Greenlets:
    """Work in at most so many greenlets at a time; without the futures that nobody asks for."""

    def __init__(self, max_workers: int) -> None:
        self._pool = importlib.import_module("eventlet").GreenPool(max_workers)

    def submit(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do *work*, which raises nothing, as soon as there is room for it."""
        self._pool.spawn_n(work, *arguments)

    def shutdown(self, wait: bool = True) -> None:
        """Wait, if asked to, until all is done."""
        if wait:
            self._pool.waitall()


def workers() -> type[Greenlets] | None:
    """What works on requests; None where the library's threads do."""
    return Greenlets if current() == EVENTLET else None


class Breaths:
    """Lets heartbeats, to callers and to the broker, be sent while code of others computes.

    Under eventlet nothing else runs until somebody waits; threads are switched anyway.
    """

    def __init__(self, seconds: float = BREATH_SECONDS) -> None:
        self._seconds = seconds
        self._last = time.monotonic()
        self._tell: Callable[[], None] | None = None

    def tell(self, told: Callable[[], None]) -> None:
        """Call *told* with every breath, in the thread or greenlet that takes it."""
        self._tell = told

    def take(self) -> None:
        """Let others run, unless they just have; costs next to nothing then."""
        if time.monotonic() - self._last >= self._seconds:
            if self._tell is not None:
                self._tell()
            time.sleep(0)
            self._last = time.monotonic()

    def between(self, items: Iterable[Item]) -> Iterator[Item]:
        """*items*, with a breath after each."""
        for item in items:
            yield item
            self.take()


BREATHS = Breaths()
"""The process has one hub, and so one time at which it last ran."""


def let_others_catch_up() -> None:
    """Have those who are ready to go on do so, as far as they come without waiting themselves.

    For who is about to do something for all that are there: then there are more.
    """
    for _turn in range(TURNS):
        time.sleep(0)
