"""Waiting until servers are what their user asked for, and saying what was not heard of."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conductor_stub.conductor_rpcapi import TOPIC
from conductor_stub.servers import ACTIVE, ERROR, Server
from scheduler.db import rows, services
from scheduler.db.database import Database

POLL_SECONDS = 0.3


@dataclass(frozen=True)
class Watch:
    """Polls *database*; *clock* gives seconds that never jump, *pause* waits for some."""

    database: Database
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def until(
        self,
        read: Callable[[], Sequence[Server]],
        is_done: Callable[[Sequence[Server]], bool],
        timeout_seconds: float,
        show: Callable[[Sequence[Server]], None],
    ) -> tuple[Sequence[Server], bool]:
        """What *read* gives once *is_done*, or when the time is over; and which of the two.

        Each reading is shown.
        """
        deadline = self.clock() + timeout_seconds
        while True:
            seen = read()
            show(seen)
            if is_done(seen):
                return seen, True
            if self.clock() >= deadline:
                return seen, False
            self.pause(POLL_SECONDS)

    def has_living_conductor(self, down_seconds: float) -> bool:
        """Whether a conductor has shown within *down_seconds* that it lives."""
        now: datetime.datetime = rows.utcnow()
        with self.database.read() as conn:
            return bool(services.up_hosts(conn, TOPIC, now, down_seconds))


def unheard_of(
    servers: Sequence[Server], wanted: int, timeout_seconds: float, has_conductor: bool
) -> str:
    """Why servers are not there after *timeout_seconds*: who has not been heard of."""
    waiting = [each for each in servers if not each.is_settled]
    untaken = [each for each in waiting if each.attempts == 0]
    unbuilt = [each for each in waiting if each.attempts]
    reasons = []
    if untaken:
        doing = "has taken" if has_conductor else "is running, none has taken"
        reasons.append(f"no conductor {doing} {_count(len(untaken))}")
    if unbuilt:
        hosts = sorted({each.instance.host for each in unbuilt if each.instance.host})
        named = f" ({', '.join(hosts)})" if hosts else ""
        reasons.append(f"no compute host{named} has finished building {_count(len(unbuilt))}")
    gone = wanted - len(servers)
    if gone:
        reasons.append(f"{_count(gone)} deleted meanwhile")
    return f"not within {timeout_seconds:g} seconds: {'; '.join(reasons)}"


def _count(number: int) -> str:
    return "1 server" if number == 1 else f"{number} servers"


def summary(servers: Sequence[Server], wanted: int) -> str:
    """How many of the *wanted* servers are in which state, in a few words."""
    active = sum(each.instance.vm_state == ACTIVE for each in servers)
    failed = sum(each.instance.vm_state == ERROR for each in servers)
    return f"{active} of {wanted} active, {failed} in error"
