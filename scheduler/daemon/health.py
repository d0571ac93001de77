"""Liveness and readiness of a worker: named checks, reported by the code that knows.

A worker *lives* as long as ending it would not help: its requests get on and it listens.  It is
*ready* when a request that came now would be taken from the bus and decided on a good state.
"""

import contextlib
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from scheduler import errors
from scheduler.daemon.worker_table import Stage
from scheduler.hosts.host_manager import HostManager
from scheduler.rpc.in_flight import InFlightRequests
from scheduler.rpc.server import Server

IDLE_LOOK_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 30.0


class Status(enum.StrEnum):
    """Of a check, from best to worst; several together have the worst of them."""

    PASS = "pass"  # noqa: S105 - no password # nosec B105
    WARN = "warn"
    """Something is wrong, but requests are served."""
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    name: str
    status: Status
    message: str


@dataclass(frozen=True)
class WorkerHealth:
    """The checks of one worker; the functions give what they look at, None before it is made.

    *stuck_seconds*: a request that has not moved for so long does not get on any more.
    """

    in_flight: InFlightRequests
    stuck_seconds: float
    stage: Callable[[], Stage]
    manager: Callable[[], Any] = lambda: None
    consumer: Callable[[], Server | None] = lambda: None
    refused_reload: Callable[[], bool] = bool

    def liveness(self) -> list[Check]:
        return [self._requests(), self._listener()]

    def readiness(self) -> list[Check]:
        hosts, consumer, stage = self._hosts(), self.consumer(), self.stage()
        is_read = hosts is not None and hosts.state_age_seconds is not None
        is_consuming = consumer is not None and consumer.is_consuming
        name, taken = stage.name.lower(), "requests are taken from the message bus"
        untaken = "requests are not taken from the message bus"
        refused = "the last reload was refused; the old one goes on"
        return [
            _check("stage", stage in (Stage.SERVING, Stage.RELOADING), name, name),
            _check("snapshot", is_read, "the hosts were read", "the hosts were not read yet"),
            self._state(hosts),
            self._cells(hosts),
            self._claims(hosts),
            _check("consumer", is_consuming, taken, untaken),
            _check("configuration", not self.refused_reload(), "as read", refused, Status.WARN),
        ]

    def _hosts(self) -> HostManager | None:
        manager = self.manager()
        return None if manager is None else manager.driver.host_manager

    def _requests(self) -> Check:
        stuck = self.in_flight.stuck_for(self.stuck_seconds) or 0.0
        in_hand = f"{self.in_flight.in_hand} in flight"
        return _check("requests", not stuck, in_hand, f"a request has not moved for {stuck:.0f} s")

    def _listener(self) -> Check:
        consumer = self.consumer()
        if consumer is None or self.stage() is not Stage.SERVING:
            finding = "not started" if consumer is None else "not serving"
            return Check("listener", Status.PASS, finding)
        deaf = "nothing listens to the message bus any more"
        return _check("listener", consumer.is_listening, "listens to the message bus", deaf)

    def _state(self, hosts: HostManager | None) -> Check:
        age = None if hosts is None else hosts.state_age_seconds
        if hosts is None or age is None:
            return Check("state", Status.PASS, "nothing is known of its age")
        finding = f"read {age:.0f} s ago"
        if not hosts.is_failing:
            return Check("state", Status.PASS, finding)
        finding = f"the database does not answer; {finding}"
        if self.manager().driver.claims.needs_database:
            return Check("state", Status.FAIL, finding)
        try:
            hosts.require_state()
        except errors.StateUnavailable as error:
            return Check("state", Status.FAIL, str(error))
        return Check("state", Status.WARN, finding)

    def _cells(self, hosts: HostManager | None) -> Check:
        cells = [] if hosts is None else hosts.cell_health()
        left_out = ", ".join(cell.name or cell.uuid for cell in cells if cell.is_left_out)
        answering = f"{len(cells)} answer" if cells else "none"
        return _check("cells", not left_out, answering, f"left out: {left_out}", Status.WARN)

    def _claims(self, hosts: HostManager | None) -> Check:
        problem = None
        if hosts is not None:
            claims = self.manager().driver.claims
            is_away = claims.needs_database and hosts.is_failing
            problem = "the database does not answer" if is_away else claims.problem
        return _check("claims", not problem, "possible", str(problem), Status.WARN)


def look_when_idle(hosts: HostManager, period_seconds: float) -> None:
    """Read *hosts* if nobody has asked for any for long: faults are to be known before.

    Drivers that read on a timer of *period_seconds* are left to that.
    """
    age = hosts.state_age_seconds
    if age is not None and age > period_seconds + IDLE_SECONDS:
        with contextlib.suppress(errors.StateUnavailable):  # which the checks then tell
            hosts.refresh()


def _check(name: str, is_well: bool, well: str, ill: str, status: Status = Status.FAIL) -> Check:
    return Check(name, Status.PASS, well) if is_well else Check(name, status, ill)
