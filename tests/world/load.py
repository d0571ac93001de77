"""Steady load from several callers, who ask again as a conductor's user would, and keep account."""

import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Self

import oslo_messaging

from conductor_stub.rpcapi import SchedulerAPI
from scheduler import errors
from scheduler.rpc.context import RequestContext
from tests.waiting import wait_until
from tests.world import fleet

CALLERS: Final = 4
TRIES: Final = 4
PAUSE_SECONDS: Final = 0.02
#: Outcomes: a host; no answer to any try.  Else it is the class of the error.
HOST, LOST = "host", "lost"


@dataclass(frozen=True)
class Request:
    """What became of one request; times are of a clock that never goes back."""

    uuid: str
    sent_at: float
    ended_at: float
    tries: int
    outcome: str
    host: str | None = None


class Load:
    """Callers that ask one request after the other for as long as the ``with`` lasts.

    A request without an answer is sent again, with the same request id for the same server.
    """

    def __init__(self, api: SchedulerAPI, **fields: Any) -> None:
        self.requests: list[Request] = []
        self._api = api
        self._fields = fields
        self._is_ending = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(CALLERS)]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_ending.set()
        for each in self._threads:
            each.join()

    def _run(self) -> None:
        while not self._is_ending.wait(PAUSE_SECONDS):
            self.requests.append(self._request())

    def _request(self) -> Request:
        own, context = str(uuid.uuid4()), RequestContext("user", "project", overwrite=False)
        sent_at = time.monotonic()
        for tries in range(1, TRIES + 1):
            try:
                (chosen,) = self._api.select_destinations(
                    context, fleet.a_spec(own, **self._fields), [own]
                )
            except (oslo_messaging.MessagingTimeout, oslo_messaging.MessageDeliveryFailure):
                continue
            except (errors.NovaException, oslo_messaging.RemoteError) as error:
                kind = getattr(error, "exc_type", None) or type(error).__name__
                return Request(own, sent_at, time.monotonic(), tries, kind)
            host = str(chosen["host"])
            return Request(own, sent_at, time.monotonic(), tries, HOST, host)
        return Request(own, sent_at, time.monotonic(), TRIES, LOST)

    # --- looking on -----------------------------------------------------------------------

    def wait_for_answers(self, number: int, timeout_seconds: float = 90.0) -> None:
        """Return when so many more requests, sent from now on, have got a host."""
        now = time.monotonic()
        wait_until(
            lambda: len(self.served_since(now)) >= number,
            timeout_seconds,
            lambda: f"{number} answers; got {Counter(each.outcome for each in self.requests)}",
        )

    def served_since(self, moment: float) -> list[Request]:
        """Requests sent since then that got a host."""
        return [e for e in list(self.requests) if e.sent_at >= moment and e.outcome == HOST]

    def recovery_seconds(self, began: float, ended: float) -> float:
        """From the end of a fault to the first host for a request sent since it began."""
        times = [each.ended_at for each in self.served_since(began) if each.ended_at >= ended]
        return min(times) - ended
