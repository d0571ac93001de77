"""Reading the configuration again: all is checked and built before anything is changed."""

import contextlib
import enum
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, plugins
from scheduler.concurrency import HubCalls, native
from scheduler.conf import check, mistakes, rereading, startup
from scheduler.conf.names import Name, section, value
from scheduler.conf.rereading import Change
from scheduler.daemon import checks
from scheduler.rpc import transport

LOG = logging.getLogger(__name__)

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
        #: ``cfg.CONF``, which code written for Nova reads at any time.
        self._first = conf
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
        level = logging.ERROR if warns else logging.DEBUG
        for said in dict.fromkeys(self._mistakes(refusal, warns=warns)):
            LOG.log(level, "The configuration stays as it was: %s", said)
        return Outcome.REFUSED

    def _mistakes(self, refusal: Exception, *, warns: bool) -> Iterator[str]:
        """One line on *refusal*, and if one *warns* on all else that ``config validate`` names."""
        paths = startup.used_files(self.conf)
        yield mistakes.line(refusal, paths)
        for each in checks.problems(self._source) if warns else ():
            if each.kind is not checks.Kind.QUESTION:
                yield mistakes.line(errors.ConfigurationError(**each.fields), paths)

    def _taken_over(self, change: Change, *, warns: bool) -> Outcome:
        self.conf = change.conf
        for group, name in change.live:
            with contextlib.suppress(cfg.NoSuchOptError):
                self._first.set_override(name, value(change.conf, group, name), section(group))
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
        return rereading.compare(self._first, self.conf, fresh, self._live)


def watch_sighup(reload: Callable[[], None]) -> None:
    """Call *reload* after each SIGHUP, where greenlets run if there are any, to the end.

    All threads hold the signal back (``concurrency.run_daemon``), and the launchers' own handlers
    never see it: they end the process when signals come quickly, or end the worker to fork a new
    one (reference page service, section 3).  Here a native thread waits for it, and then for the
    reload.  Signals that come meanwhile are worth one more together.
    """
    hub = HubCalls()

    def reload_or_log() -> None:
        try:
            reload()
        except Exception:
            LOG.exception("The configuration could not be read again")

    def wait() -> None:
        while signal.sigwait({signal.SIGHUP}):
            if _is_in_foreground():  # its terminal is gone
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                hub.call(reload_or_log)

    hub.start()
    native("threading").Thread(target=wait, name="reload", daemon=True).start()


def _is_in_foreground() -> bool:
    """True when this process belongs to what runs in the foreground of a terminal."""
    try:
        return os.isatty(sys.stdout.fileno()) and os.getpgrp() == os.tcgetpgrp(sys.stdout.fileno())
    except (OSError, ValueError):  # no such descriptor, or no terminal
        return False
