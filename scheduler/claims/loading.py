"""From ``[scheduler] claims`` to a back end, its reservations and what it needs to start."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.backend import Claims
from scheduler.claims.database import DatabaseClaims
from scheduler.claims.placement.backend import PlacementClaims
from scheduler.claims.placement.client import PlacementClient
from scheduler.claims.reader import ClaimReader
from scheduler.claims.shared_reservations import SharedReservations
from scheduler.db import migration
from scheduler.db.database import FAILURES, Database, configured_settings
from scheduler.hosts.consumption import Fitting
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

OPTION: Final = "[scheduler] claims"
CONNECTION: Final = "[claims] connection"
Clock = Callable[[], float]
NONE, DATABASE, PLACEMENT = "none", "database", "placement"


class Backend:
    """No claims: the reservations of one worker are its own."""

    def reservations(self, _clock: Clock = time.time) -> Callable[[HostTable], Reservations]:
        """The maker of reservations for a host manager; *clock* gives seconds since the epoch."""
        return Reservations

    def claims(self, _host_manager: Any) -> Claims:
        """The back end that claims decisions on the table of a host manager."""
        return Claims()

    def serves(self, _driver: Any) -> bool:
        """True when the decisions of a driver, given by its class, are to be claimed."""
        return True

    def check_ready(self) -> None:
        """Raise ConfigurationError or DatabaseNotReady if nothing could be claimed."""


class DatabaseBackend(Backend):
    """Claims as rows of the database that all schedulers of the fleet name."""

    def __init__(self, conf: cfg.ConfigOpts, database: Database) -> None:
        self._database = claims_database(conf, database)
        self._fitting = Fitting.from_conf(conf)
        self._expiry_seconds = float(conf.claims.expiry_seconds)

    def reservations(self, clock: Clock = time.time) -> Callable[[HostTable], Reservations]:
        """See the base class."""
        return functools.partial(
            SharedReservations,
            reader=ClaimReader(self._database),
            fitting=self._fitting,
            expiry_seconds=self._expiry_seconds,
            clock=clock,
        )

    def claims(self, host_manager: Any) -> Claims:
        """See the base class; the host manager has what :meth:`reservations` makes."""
        return DatabaseClaims(self._database, host_manager.reservations, host_manager.lock)

    def serves(self, driver: Any) -> bool:
        """True when *driver* claims what it decides; others name hosts and write nothing."""
        if claims_hosts(driver):
            return True
        LOG.warning(
            "%s claims nothing although %s = database: several workers or daemons may promise the "
            "same host to two servers; the compute host refuses one of those then.",
            driver.__name__,
            OPTION,
        )
        return False

    def check_ready(self) -> None:
        """See the base class."""
        try:
            found = migration.version(self._database)
            if found is not None and not self._database.is_read_only:
                migration.check_ready(self._database)
                return
        except FAILURES as error:
            raise self._database.unusable(error) from error
        finally:
            self._database.dispose()
        fault = "has no tables for claims" if found is None else "is not to be written to"
        raise errors.ConfigurationError(
            option=OPTION,
            reason=f"{self._database.masked_url} {fault}: set {CONNECTION} to a database that "
            f"{migration.SYNC_COMMAND} has made, or this option to none",
        )


class PlacementBackend(Backend):
    """Claims as allocations of the Placement service that ``[placement]`` names."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf, self._client = conf, PlacementClient.from_conf(conf)

    def claims(self, host_manager: Any) -> Claims:
        """See the base class."""
        return PlacementClaims(self._conf, self._client, host_manager)

    def serves(self, driver: Any) -> bool:
        """True when *driver* decides among candidates; as in Nova some never ask for any."""
        if getattr(driver, "USES_ALLOCATION_CANDIDATES", False):
            return True
        LOG.warning("%s asks Placement for nothing and claims nothing", driver.__name__)
        return False


def claims_database(conf: cfg.ConfigOpts, database: Database) -> Database:
    """The database of ``[claims] connection``, *database* itself where that is unset.

    Raises ConfigurationError when the URL cannot be used.
    """
    url = conf.claims.connection
    if not url:
        return database
    return Database(url, settings=configured_settings(conf), option=CONNECTION)


def settle(conf: cfg.ConfigOpts, database: Database, driver: Any = None) -> None:
    """Fill in ``[scheduler] claims`` where it is not set: ``database`` wherever that is possible.

    That is where *database*, which must answer, is our own and may be written to, or another one
    is named for claims; and where the class *driver*, if one is given, claims.
    """
    if conf.scheduler.claims is not None:
        return
    hindrance = _hindrance(conf, database, driver)
    if hindrance is None:
        LOG.info("Hosts are claimed in %s", claims_database(conf, database).masked_url)
    else:
        LOG.info("Hosts are not claimed: %s", hindrance)
    conf.set_default("claims", NONE if hindrance else DATABASE, group="scheduler")


def _hindrance(conf: cfg.ConfigOpts, database: Database, driver: Any) -> str | None:
    if driver is not None and not claims_hosts(driver):
        return f"{driver.__name__} never does"
    if conf.claims.connection:
        return None
    if database.is_read_only:
        return f"{database.masked_url} is not to be written to"
    if migration.version(database) is None:
        return f"{database.masked_url} has no tables for that; see {CONNECTION}"
    return None


def claims_hosts(driver: Any) -> bool:
    """True when *driver* has its decisions claimed."""
    return bool(getattr(driver, "CLAIMS_HOSTS", False))


def backend_from_conf(conf: cfg.ConfigOpts, database: Database) -> Backend:
    """The back end of ``[scheduler] claims``, none if that is not settled; nothing connects yet."""
    if conf.scheduler.claims == PLACEMENT:
        return PlacementBackend(conf)
    return DatabaseBackend(conf, database) if conf.scheduler.claims == DATABASE else Backend()
