"""Heartbeats to callers whose calls are being worked on: one native thread for all calls.

A caller that monitors its call says how long it waits for a heartbeat.  The library starts
a thread per call for that, which for a call of a millisecond costs a good part of it.  Under
eventlet that is a greenlet, which sends nothing while a decision computes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any, Final

import amqp
from oslo_log import log as logging

from scheduler import concurrency
from scheduler.rpc import messages
from scheduler.rpc.connection import BROKEN, Deliveries

LOG = logging.getLogger(__name__)

LEAST_SECONDS: Final = 2
"""The shortest patience of a caller that can be kept: two heartbeats fall into it."""
LOOK_SECONDS: Final = 0.5
"""Between two looks at what is due."""
ANSWER_SECONDS: Final = 5.0
"""After which a broker that confirms nothing, or not the end, is connected to anew."""
OF_THE_LIBRARY: Final = ("on_blocked", "on_unblocked")
"""Options that call the library, which logs with locks that greenlets use."""


class CallHeartbeats:
    """Sends heartbeats on a connection of its own, to the broker that brings *deliveries*.

    One native thread uses it, which may log nothing: greenlets use the locks of the log.
    """

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._connection: Any = None
        self._channel: Any = None

    def send(self, incoming: Any) -> None:
        """Send one to the caller of *incoming*; raises what the libraries do."""
        try:
            channel = self._channel or self._open()
            message: dict[str, Any] = {"result": None, "failure": None, "ending": False}
            message |= {
                messages.MESSAGE_ID: incoming.msg_id,
                messages.UNIQUE_ID: os.urandom(16).hex(),
            }
            body = amqp.Message(messages.pack(message), **messages.PROPERTIES)
            # To a queue that is gone it goes nowhere.
            channel.basic_publish(body, "", incoming.reply_q)
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, if there is one, until the next heartbeat."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(*BROKEN, OSError):  # it is gone already
                connection.release()

    def _open(self) -> Any:
        known = self._deliveries.client
        if known is None:
            raise ConnectionError("no broker was connected to yet")
        options = dict(known.transport_options)
        for name in OF_THE_LIBRARY:
            options.pop(name, None)
        self._connection = known.clone(transport_options=options)
        self._connection.connect().sock.settimeout(ANSWER_SECONDS)
        self._channel = self._connection.channel()
        return self._channel


class CallMonitor:
    """Sends a heartbeat for each call that it watches, twice per time that its caller waits.

    *clock* gives seconds that never go back.
    """

    def __init__(
        self, heartbeats: CallHeartbeats, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._heartbeats = heartbeats
        self._clock = clock
        #: By call: when the next heartbeat is due, and the seconds between two.
        self._watched: dict[Any, tuple[float, float]] = {}
        self._native = concurrency.native("threading")
        self._lock = self._native.Lock()  # held for moments, in which nothing waits or logs
        self._is_started = False
        self.failed = 0
        """Number of heartbeats that could not be sent; the thread may not log that."""

    def watch(self, incoming: Any) -> None:
        """From now on *incoming*, whose caller may say how long it waits, is being worked on."""
        patience_seconds = incoming.client_timeout
        # On the bus inside this process, where requests name no queue, there are no heartbeats.
        if not patience_seconds or getattr(incoming, "reply_q", None) is None:
            return
        if patience_seconds < LEAST_SECONDS:
            LOG.warning("Client provided an invalid timeout value of %r", patience_seconds)
            return
        seconds = patience_seconds / 2
        with self._lock:
            self._watched[incoming] = self._clock() + seconds, seconds
            is_first, self._is_started = not self._is_started, True
        if is_first:
            self._native.Thread(target=self._run, name="call-monitor", daemon=True).start()

    def forget(self, incoming: Any) -> None:
        """The work on *incoming* is over."""
        with self._lock:
            self._watched.pop(incoming, None)

    def _run(self) -> None:
        sleep = concurrency.native("time").sleep
        while True:
            sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Send the heartbeats that are due; those that fail are due again at the next look."""
        now = self._clock()
        with self._lock:
            late = [incoming for incoming, (due, _) in self._watched.items() if due <= now]
        for incoming in late:
            if incoming in self._watched:
                self._send(incoming, now)
        if not self._watched:
            self._heartbeats.close()

    def _send(self, incoming: Any, now: float) -> None:
        try:
            self._heartbeats.send(incoming)
        except Exception:  # noqa: BLE001 - whatever it is, a new connection mends it, or none can
            self.failed += 1
            return
        with self._lock:
            if incoming in self._watched:
                seconds = self._watched[incoming][1]
                self._watched[incoming] = now + seconds, seconds
