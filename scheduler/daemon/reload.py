"""Reading the configuration again: all is checked and built before anything is changed."""

import contextlib
import enum
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection
from typing import Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, plugins
from scheduler.concurrency import native
from scheduler.conf import check, mistakes, rereading, startup
from scheduler.conf.names import Name
from scheduler.conf.rereading import Change
from scheduler.rpc import transport

LOG = logging.getLogger(__name__)

READ_BYTES: Final = 4096

PutInForce = Callable[[], None]
Build = Callable[[cfg.ConfigOpts], PutInForce]
"""Builds what a new configuration makes necessary, or raises an error of this project."""


class Outcome(enum.Enum):
    APPLIED = "applied"
    RESTART_NEEDED = "restart_needed"
    """Applied, but for what needs a restart."""
    REFUSED = "refused"


class Reloading:
    """Keeps the configuration in force, and exchanges it; *live* is what may change."""

    def __init__(
        self, source: startup.Source, conf: cfg.ConfigOpts, live: Collection[Name]
    ) -> None:
        self.conf = conf
        self._source = source
        self._live = live

    def reload(self, build: Build, *, warns: bool = True) -> Outcome:
        """Read the files again and put them in force by means of *build*, or say why not.

        One worker of several *warns*: all read the same files.
        """
        try:
            change = self._read()
            put_in_force = build(change.conf)
            self._put_in_force(change.conf, put_in_force)
        except errors.NovaException as error:
            refusal = error
        else:
            return self._taken_over(change, warns=warns)
        # Out of the handler, where the library would add the error to the line.
        said = mistakes.line(refusal, startup.used_files(self.conf))
        level = logging.ERROR if warns else logging.DEBUG
        LOG.log(level, "The configuration stays as it was: %s", said)
        return Outcome.REFUSED

    def _taken_over(self, change: Change, *, warns: bool) -> Outcome:
        self.conf = change.conf
        if warns:
            startup.warn_of_unknown(change.conf)
        changed = rereading.listed(change.live) or "nothing"
        LOG.info("The configuration was read again; what changed: %s", changed)
        if not change.for_restart:
            return Outcome.APPLIED
        if warns:
            LOG.warning("A restart is needed for %s", rereading.listed(change.for_restart))
        return Outcome.RESTART_NEEDED

    def _put_in_force(self, conf: cfg.ConfigOpts, put_in_force: PutInForce) -> None:
        startup.change_log_levels(self.conf, conf)
        try:
            put_in_force()
        except BaseException:
            startup.change_log_levels(conf, self.conf)
            raise

    def prepare_forks(self, build: Build) -> None:
        """Begin workers forked from now on with the files as they are; they log what is to say."""
        try:
            change = self._read()
            build(change.conf)
        except errors.NovaException as error:
            LOG.debug("New workers begin with the former configuration: %s", error)
            return
        self.conf = change.conf

    def _read(self) -> Change:
        plugins.installed.cache_clear()  # a plug-in may have been installed meanwhile
        fresh = startup.fill(self._source)
        transport.complete(fresh)
        check.validate(fresh)
        return rereading.compare(self.conf, fresh, self._live)


class SighupHandler:
    """SIGHUP in one process, all of whose threads hold it back (``concurrency.run_daemon``).

    The launchers' own handlers never see it: they end the process when signals come quickly, or end
    the worker to fork a new one (reference page service, section 3).  Here a native thread makes
    each signal a byte in a socket, and whoever waits for it takes one reload after the other.
    Signals that come during one are worth one more together.
    """

    def __init__(self) -> None:
        self._receiving_end, self._sending_end = socket.socketpair()
        os.set_blocking(self._sending_end.fileno(), False)
        self._is_watched = False

    def note(self) -> None:
        with contextlib.suppress(OSError):  # full: enough reloads are waiting; or closed
            os.write(self._sending_end.fileno(), b"\0")

    def watch(self, reload: Callable[[], None]) -> None:
        """Call *reload* after each SIGHUP, in a thread (or greenlet) of its own, to the end."""
        if self._sending_end.fileno() < 0:  # ended before it had begun
            return
        self._is_watched = True
        for threads, work in (threading, self._watch), (native("threading"), self._wait):
            threads.Thread(target=work, args=(reload,), daemon=True, name="reload").start()

    def close(self) -> None:
        """Ignore SIGHUP from now on."""
        self._sending_end.close()  # whoever watches sees the end
        if not self._is_watched:
            self._receiving_end.close()

    def _wait(self, _reload: Callable[[], None]) -> None:
        while signal.sigwait({signal.SIGHUP}):
            if _is_in_foreground():  # its terminal is gone
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                self.note()

    def _watch(self, reload: Callable[[], None]) -> None:
        with self._receiving_end as receiving_end:
            while receiving_end.recv(READ_BYTES):
                try:
                    reload()
                except Exception:
                    LOG.exception("The configuration could not be read again")


def _is_in_foreground() -> bool:
    """True when this process belongs to what runs in the foreground of a terminal."""
    try:
        return os.isatty(sys.stdout.fileno()) and os.getpgrp() == os.tcgetpgrp(sys.stdout.fileno())
    except (OSError, ValueError):  # no such descriptor, or no terminal
        return False
