"""Signs of life to callers whose calls are being worked on: one native thread for all calls.

A caller that monitors its call says how long it waits for a sign.  The library starts a thread per
call for that, which for a call of a millisecond costs a good part of it.  Under eventlet that is a
greenlet, which sends nothing while a decision computes.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from typing import Any, Final

import amqp
from oslo_log import log as logging

from scheduler import concurrency
from scheduler.rpc import envelope
from scheduler.rpc.deliveries import BROKEN, Deliveries

LOG = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.5
"""After a sign that could not be sent; the shortest patience of a caller leaves one second."""
ANSWER_SECONDS: Final = 5.0
"""After which a broker that confirms nothing, or not the end, is connected to anew."""
OF_THE_LIBRARY: Final = ("on_blocked", "on_unblocked")
"""Options that call the library, which logs with locks that greenlets use."""


class Signs:
    """Sends signs of life on a connection of its own, to the broker that brings *deliveries*.

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
                envelope.MESSAGE_ID: incoming.msg_id,
                envelope.UNIQUE_ID: os.urandom(16).hex(),
            }
            body = amqp.Message(envelope.pack(message), **envelope.PROPERTIES)
            # To a queue that is gone it goes nowhere.
            channel.basic_publish(body, "", incoming.reply_q)
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, if there is one, until the next sign."""
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
    """Sends a sign of life for each call that it watches, twice per time that its caller waits.

    *clock* gives seconds that never go back.
    """

    def __init__(self, signs: Signs, clock: Callable[[], float] = time.monotonic) -> None:
        self._signs = signs
        self._clock = clock
        #: By call: when the next sign is due, and the seconds between two.
        self._watched: dict[Any, tuple[float, float]] = {}
        self._next_look = math.inf
        self._native = concurrency.native("threading")
        self._sooner = self._native.Event()
        self._lock = self._native.Lock()  # held for moments, in which nothing waits or logs
        self._is_looking = False

    def watch(self, incoming: Any) -> None:
        """From now on *incoming* is being worked on."""
        seconds = _seconds_between_signs(incoming)
        if seconds is None:
            return
        due = self._clock() + seconds
        with self._lock:
            self._watched[incoming] = due, seconds
            is_first, self._is_looking = not self._is_looking, True
            if is_first:
                self._next_look = due
            elif due < self._next_look:
                self._next_look = due
                self._sooner.set()
        if is_first:
            self._native.Thread(target=self._run, name="call-monitor", daemon=True).start()

    def forget(self, incoming: Any) -> None:
        """The work on *incoming* is over."""
        with self._lock:
            self._watched.pop(incoming, None)

    def _run(self) -> None:
        """Look when something is due, until then nothing is watched any more."""
        while True:
            while (seconds := self._next_look - self._clock()) > 0:
                self._sooner.wait(seconds)
                self._sooner.clear()
            self.look()
            if not self._watched:
                self._signs.close()  # as long as no other thread can use it
            with self._lock:
                if not self._watched:
                    self._is_looking = False
                    return
                self._next_look = min(due for due, _ in self._watched.values())

    def look(self) -> None:
        """Send the signs that are due."""
        now = self._clock()
        with self._lock:
            late = [incoming for incoming, (due, _) in self._watched.items() if due <= now]
            for incoming in late:
                seconds = self._watched[incoming][1]
                self._watched[incoming] = now + seconds, seconds
        for incoming in late:
            if incoming in self._watched:
                self._tell(incoming)

    def _tell(self, incoming: Any) -> None:
        try:
            self._signs.send(incoming)
        except Exception:  # noqa: BLE001 - whatever it is, a new connection mends it, or none can
            with self._lock:
                if incoming in self._watched:
                    seconds = self._watched[incoming][1]
                    self._watched[incoming] = self._clock() + RETRY_SECONDS, seconds


def _seconds_between_signs(incoming: Any) -> float | None:
    """Half of what the caller waits; None if it does not say, or nothing that can be kept.

    On the bus inside this process, where requests name no queue, there are no signs.
    """
    given = incoming.client_timeout
    if not given or getattr(incoming, "reply_q", None) is None:
        return None
    try:
        seconds = int(given) / 2
    except (TypeError, ValueError):
        seconds = 0.0
    if seconds < 1:
        LOG.warning("Client provided an invalid timeout value of %r", given)
        return None
    return seconds
