"""The one module that knows whether greenlets or threads run.

The back end must be chosen and, for eventlet, the standard library patched, before
``oslo_messaging`` is imported anywhere (reference page service, section 11).  The entry points
in ``cmd`` therefore import only this module and hand the name of the one that works to :func:`run`.
"""

import collections
import configparser
import importlib
import logging
import os
import pathlib
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import scheduler

ENVIRONMENT_VARIABLE = "OS_NOVA_DISABLE_EVENTLET_PATCHING"
OPTION = "concurrency_backend"
EVENTLET = "eventlet"
THREADING = "threading"


def choose(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """Name the back end: by ENVIRONMENT_VARIABLE, else by the option, else eventlet.

    Only the files named by ``--config-file`` and ``--config-dir`` are looked at, as Nova does.
    A value that is none of the option's choices counts as ``auto`` here; its own check names it
    when the configuration is parsed.
    """
    value = environ.get(ENVIRONMENT_VARIABLE, "").strip().lower()
    if value:
        return THREADING if value in ("1", "true", "yes") else EVENTLET
    configured = environ.get("OS_DEFAULT__CONCURRENCY_BACKEND") or _option_from_files(argv)
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
        value = os.path.expanduser(value if separator else next(words, ""))
        if name == "--config-file":
            files.append(value)
        else:
            files.extend(str(path) for path in sorted(pathlib.Path(value).glob("*.conf")))
    return files


class _Logger(logging.Logger):
    """A logger that remembers nothing of levels, and so needs no lock to tell what is enabled.

    Under eventlet that lock, one for all loggers, is a greenlet's.  A native thread that met
    with a greenlet there, as after a reload, could keep it waiting for ever.
    """

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the library's name
        is_shown = level > self.manager.disable and level >= self.getEffectiveLevel()
        return is_shown and not self.disabled


def _own_log_locks() -> None:
    """Lock the logs of a forked process for itself.

    Under eventlet locks are pipes: who was killed in a line would leave it locked for all others.
    """
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            handler.createLock()


def activate(backend: str) -> None:
    """Patch the standard library if *backend* is eventlet, and fix oslo.service's back end."""
    # Whatever imports eventlet first, also with threads, announces that it is in bugfix mode.
    warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
    if backend == EVENTLET:
        importlib.import_module("eventlet").monkey_patch(os=False)
        logging.setLoggerClass(_Logger)
        os.register_at_fork(after_in_child=_own_log_locks)
        # psycopg's own way of waiting for PostgreSQL would stop every greenlet, also the one
        # that holds the lock being waited for.
        os.environ.setdefault("PSYCOPG_WAIT_FUNC", "wait_selector")
    service_backend = importlib.import_module("oslo_service.backend")
    service_backend.init_backend(service_backend.BackendType(backend))


def current() -> str:
    """``eventlet`` or ``threading``, as fixed by :func:`activate`."""
    service_backend = importlib.import_module("oslo_service.backend")
    return str(service_backend.get_backend_type().value)


def open_standard_streams() -> None:
    """Give what was closed of the three standard streams to /dev/null.

    Else a connection gets such a number, and what nobody should see is written to it.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            mode = "w" if descriptor else "r"
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - stays open


def is_version_asked(argv: Sequence[str]) -> bool:
    """True where the version is all that is wanted, which needs no library; it is printed."""
    if list(argv) == ["--version"]:
        sys.stdout.write(f"{scheduler.__version__}\n")
        return True
    return False


def run(module: str, argv: Sequence[str]) -> int:
    """Choose and activate the back end, then import *module* and return ``module.main(argv)``."""
    if is_version_asked(argv):
        return 0
    open_standard_streams()
    activate(choose(argv, os.environ))
    return call_main(module, list(argv))


def call_main(module: str, *arguments: Any) -> int:
    """Import *module* and return ``module.main(*arguments)``.

    The program ends without a word, as by SIGPIPE, when nobody reads its output any more.
    """
    main = importlib.import_module(module).main
    try:
        try:
            return int(main(*arguments) or 0)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def run_daemon(module: str, argv: Sequence[str]) -> int:
    """Hold SIGHUP back from all threads and forks, and :func:`run`.

    It waits until :mod:`scheduler.daemon.reload` takes it, also while the program starts.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    return run(module, argv)


def _is_patched() -> bool:
    patcher = sys.modules.get("eventlet.patcher")
    return patcher is not None and bool(patcher.is_monkey_patched("thread"))


def native(module: str) -> Any:
    """The standard library's *module* (``threading``, ``socket``) as it is without eventlet.

    Its threads run beside a decision that computes for seconds.  They may not touch a lock, queue
    or pool that greenlets use as well: see :class:`HubCalls`.
    """
    if not _is_patched():
        return importlib.import_module(module)
    return importlib.import_module("eventlet.patcher").original(module)


class HubCalls:
    """Lets native threads call functions in the thread whose locks and sockets these use.

    Under eventlet a native thread may not wait for a greenlet's lock: nobody would wake it.  With
    the threading back end all threads are native, and a call is made where it is asked for.
    """

    def __init__(self, wait_seconds: float | None = None) -> None:
        """A call that the hub does not come to in *wait_seconds*, if given, raises TimeoutError."""
        self._wait_seconds = wait_seconds
        self._calls: collections.deque[Callable[[], None]] = collections.deque()
        self._waking_end: socket.socket | None = None

    def start(self) -> None:
        """Begin to make calls, in greenlets of the thread that calls this."""
        if not _is_patched():
            return
        woken_end, self._waking_end = socket.socketpair()
        os.set_blocking(self._waking_end.fileno(), False)
        threading.Thread(target=self._run, args=(woken_end,), name="calls", daemon=True).start()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call *function* there; return or raise what it does."""
        if self._waking_end is None:
            return function(*arguments)
        is_done = native("threading").Event()
        outcome: list[tuple[Any, Exception | None]] = []

        def make() -> None:
            try:
                outcome.append((function(*arguments), None))
            except Exception as error:  # noqa: BLE001 - raised where the result is waited for
                outcome.append((None, error))
            is_done.set()

        self._calls.append(make)
        os.write(self._waking_end.fileno(), b"\0")
        if not is_done.wait(self._wait_seconds):
            raise TimeoutError(f"not called within {self._wait_seconds} s")
        [(result, error)] = outcome
        if error is not None:
            raise error
        return result

    def _run(self, woken_end: socket.socket) -> None:
        while woken_end.recv(4096):
            while self._calls:
                threading.Thread(target=self._calls.popleft(), daemon=True).start()


class Greenlets:
    """Work in at most so many greenlets at a time; without the futures that nobody asks for."""

    def __init__(self, max_workers: int) -> None:
        self._pool = importlib.import_module("eventlet").GreenPool(max_workers)

    def submit(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do *work*, which raises nothing, as soon as there is room for it."""
        self._pool.spawn_n(work, *arguments)

    def shutdown(self, wait: bool = True) -> None:
        if wait:
            self._pool.waitall()


def let_others_catch_up() -> None:
    """Let all who are ready go on until they wait: then more are there for what serves them all."""
    for _turn in range(2):  # one in which they are woken, one in which they come here
        time.sleep(0)
