"""How a server that ends leaves its queues."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scheduler.rpc.listener import _unsubscribe


class Consumer:
    """The library's, which notes by which tag it is cancelled."""

    def __init__(self, cancelled: list[int]) -> None:
        self.cancel = cancelled.append


def test_the_queue_that_was_subscribed_to_last_is_left_first() -> None:
    cancelled: list[int] = []
    bus = SimpleNamespace(connected=True, connection_errors=(), channel_errors=())
    consumers = {Consumer(cancelled): tag for tag in (2, 3, 1)}
    poller: Any = SimpleNamespace(
        conn=SimpleNamespace(connection=SimpleNamespace(connection=bus, _consumers=consumers))
    )
    _unsubscribe(poller)
    assert cancelled == [1, 3, 2]
