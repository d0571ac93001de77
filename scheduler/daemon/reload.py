"""Reading the configuration again while the program runs.

Everything is parsed, checked and built before anything is changed; a configuration that cannot be
used leaves all as it was (docs/configuration.md).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from typing import Protocol

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.conf import check, claims, rereading, startup
from scheduler.conf.names import Name
from scheduler.conf.rereading import Change
from scheduler.rpc import transport

LOG = logging.getLogger(__name__)

PutInForce = Callable[[], None]


class Outcome(enum.Enum):
    """What came of one reload."""

    APPLIED = "applied"
    RESTART_NEEDED = "restart_needed"
    """Applied, but for what needs a restart."""
    REFUSED = "refused"


class Build(Protocol):
    """Builds what a new configuration makes necessary."""

    def __call__(self, conf: cfg.ConfigOpts, /) -> PutInForce:
        """What puts *conf* in force; raises an error of this project where that cannot be."""


class Reloading:
    """Keeps the configuration in force, and exchanges it; *live* is what may change."""

    def __init__(
        self, source: startup.Source, conf: cfg.ConfigOpts, live: Collection[Name]
    ) -> None:
        self.conf = conf
        self._source = source
        self._live = live

    def reload(self, build: Build) -> Outcome:
        """Read the files again and put them in force by means of *build*, or say why not."""
        try:
            change = self._read()
            put_in_force = build(change.conf)
            self._put_in_force(change.conf, put_in_force)
        except errors.NovaException as error:
            LOG.error("The configuration stays as it was: %s", " ".join(str(error).split()))
            return Outcome.REFUSED
        self.conf = change.conf
        startup.warn_of_unknown(change.conf)
        changed = rereading.listed(change.live) or "nothing"
        LOG.info("The configuration was read again; what changed: %s", changed)
        if not change.for_restart:
            return Outcome.APPLIED
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
        """Let workers that are forked from now on begin with the files as they are now.

        The workers themselves log what there is to say.
        """
        try:
            change = self._read()
            build(change.conf)
        except errors.NovaException as error:
            LOG.debug("New workers begin with the former configuration: %s", error)
            return
        self.conf = change.conf

    def _read(self) -> Change:
        fresh = startup.read_again(self._source)
        transport.complete(fresh)
        claims.register_login(fresh)
        check.read_all(fresh)
        return rereading.compare(self.conf, fresh, self._live)
