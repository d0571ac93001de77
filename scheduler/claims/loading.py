"""From ``[scheduler] claims`` to a back end, its reservations and what it needs to start."""

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
from scheduler.claims.placement.candidates import CandidateQuery
from scheduler.claims.placement.client import VERSION, PlacementClient, Requester
from scheduler.claims.reader import ClaimReader
from scheduler.claims.shared_reservations import SharedReservations
from scheduler.db import migration
from scheduler.db.database import FAILURES, Database, is_atomic
from scheduler.db.databases import CLAIMS_OPTION, claims_database
from scheduler.hosts.host_state import Fitting
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable

LOG = logging.getLogger(__name__)

OPTION: Final = "[scheduler] claims"
NONE, DATABASE, PLACEMENT = "none", "database", "placement"
#: Most time that the start waits for Placement.
PLACEMENT_SECONDS: Final = 2.0
#: Attribute of drivers whose decisions may be claimed in a database.
_CLAIMS_HOSTS: Final = "CLAIMS_HOSTS"
_UNCLAIMED: Final = (
    f"%s claims nothing although {OPTION} = database: several workers or daemons may promise "
    "the same host to two servers; the compute host refuses one of those then."
)
_IN_SEVERAL_STEPS: Final = (
    "A claim in %s takes several round trips: a scheduler that is stopped in between keeps others "
    "from its hosts until the server ends its transaction, or it goes on; MariaDB and PostgreSQL "
    "need one"
)


def reservations_from_conf(
    conf: cfg.ConfigOpts, database: Database, clock: Callable[[], float] = time.time
) -> Callable[[HostTable], Reservations]:
    """The maker of reservations for a host manager; *clock* gives seconds since the epoch."""
    if conf.scheduler.claims != DATABASE:
        return Reservations
    return functools.partial(
        SharedReservations,
        reader=ClaimReader(claims_database(conf, database)),
        fitting=Fitting.from_conf(conf),
        expiry_seconds=float(conf.claims.expiry_seconds),
        grace_seconds=float(conf.claims.grace_seconds),
        clock=clock,
    )


def claims_from_conf(conf: cfg.ConfigOpts, host_manager: Any, driver: Any) -> Claims:
    """The back end of ``[scheduler] claims``, none if that is not settled; nothing connects yet.

    It claims what is decided on the table of *host_manager*, whose reservations are those of
    :func:`reservations_from_conf`; nothing for a *driver*, given by its class, that never claims.
    """
    kind = conf.scheduler.claims
    if kind == DATABASE:
        if getattr(driver, _CLAIMS_HOSTS, False):
            return DatabaseClaims(host_manager.reservations, host_manager.lock)
        LOG.warning(_UNCLAIMED, driver.__name__)
    elif kind == PLACEMENT:
        if getattr(driver, "USES_ALLOCATION_CANDIDATES", False):
            return PlacementClaims(conf, PlacementClient.from_conf(conf), host_manager)
        # As in Nova some drivers never ask for candidates.
        LOG.warning("%s asks Placement for nothing and claims nothing", driver.__name__)
    return Claims()


def check_ready(conf: cfg.ConfigOpts, database: Database) -> None:
    """Raise ConfigurationError or DatabaseNotReady if nothing could be claimed."""
    if conf.scheduler.claims == PLACEMENT:
        client = PlacementClient.from_conf(conf)
        CandidateQuery(conf, client)
        if client.is_too_old(Requester(None, None, None).within(PLACEMENT_SECONDS)):
            reason = f"this Placement does not know version {VERSION}, which Train and later have"
            raise errors.ConfigurationError(option=OPTION, reason=reason)
    if conf.scheduler.claims != DATABASE:
        return
    claimed = claims_database(conf, database)
    try:
        found = migration.version(claimed)
        if found is not None and not claimed.is_read_only:
            migration.check_ready(claimed)
            if not is_atomic(claimed.engine.dialect):
                LOG.info(_IN_SEVERAL_STEPS, claimed.masked_url)
            return
    except FAILURES as error:
        raise claimed.unusable(error) from error
    finally:
        claimed.dispose()
    fault = "has no tables for claims" if found is None else "is not to be written to"
    raise errors.ConfigurationError(
        option=OPTION,
        reason=f"{claimed.masked_url} {fault}: set {CLAIMS_OPTION} to a database that "
        f"{migration.SYNC_COMMAND} has made, or this option to none",
    )


def settle(conf: cfg.ConfigOpts, database: Database, driver: Any = None) -> None:
    """Fill in ``[scheduler] claims`` where it is not set: ``database`` wherever that is possible.

    That is where *database*, which must answer, is our own and may be written to, or another one
    is named for claims; and where the class *driver*, if one is given, claims.
    """
    if conf.scheduler.claims is not None:
        return
    hindrance = None
    if driver is not None and not getattr(driver, _CLAIMS_HOSTS, False):
        hindrance = f"{driver.__name__} never does"
    elif not conf.claims.connection and database.is_read_only:
        hindrance = f"{database.masked_url} is not to be written to"
    elif not conf.claims.connection and migration.version(database) is None:
        hindrance = f"{database.masked_url} has no tables for that; see {CLAIMS_OPTION}"
    if hindrance is None:
        LOG.info("Hosts are claimed in %s", claims_database(conf, database).masked_url)
    else:
        LOG.info("Hosts are not claimed: %s", hindrance)
    conf.set_default("claims", NONE if hindrance else DATABASE, group="scheduler")
