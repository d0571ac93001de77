"""A server's channel for answers on a bus that only notes what was written."""

from __future__ import annotations

import contextlib
import json
import struct
import threading
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from amqp import spec
from oslo_messaging._drivers.amqpdriver import ObsoleteReplyQueuesCache

from scheduler.afterwards import Afterwards
from scheduler.rpc.replies import QuicklyAnswered
from scheduler.rpc.reply_channel import ReplyChannel
from scheduler.rpc.undelivered import Undelivered

RESULT = [[{"host": "cmp1"}]]
SHORT, LONG, NONE = "short", "long", "none"
HEADER = struct.Struct(">BHI")


class Bus:
    """A connection to the broker: what was written, and what the broker has said."""

    frame_max = 131072

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.error: Exception | None = None
        self.bytes_sent = 0
        self.told: list[tuple[str, Any]] = []
        self.transport = Transport(self)
        self.channels: list[Any] = []
        self.is_collected = False

    @property
    def published(self) -> list[tuple[bytes, dict[str, Any]]]:
        """The arguments and bodies of what was written."""
        frames = [frame for each in self.written for frame in frames_of(each)]
        assert [kind for kind, _payload in frames] == [1, 2, 3] * (len(frames) // 3)
        payloads = [payload for _kind, payload in frames]
        assert all(each[:4] == struct.pack(">HH", *spec.Basic.Publish) for each in payloads[::3])
        return [
            (method[4:], json.loads(body))
            for method, body in zip(payloads[::3], payloads[2::3], strict=True)
        ]

    def channel(self) -> Any:
        made = SimpleNamespace(
            connection=self,
            channel_id=2,
            events=defaultdict(set),
            confirm_select=lambda: None,
            close=lambda: setattr(made, "connection", None),
        )
        self.channels.append(made)
        return made

    def blocking_read(self) -> None:
        buffer = self.transport._read_buffer
        size = HEADER.unpack_from(buffer)[2]
        self.transport._read_buffer = buffer[HEADER.size + size + 1 :]
        self._take()

    def drain_events(self, timeout: float) -> None:
        if not self.told:
            raise TimeoutError(timeout)
        self._take()

    def _take(self) -> None:
        kind, arguments = self.told.pop(0)
        for callback in list(self.channels[-1].events[kind]):
            callback(*arguments)

    def collect(self) -> None:
        self.is_collected = True
        for each in self.channels:
            each.connection = None


def frames_of(written: bytes) -> list[tuple[int, bytes]]:
    """Kind and payload of each frame."""
    found = []
    while written:
        kind, _channel, size = HEADER.unpack_from(written)
        found.append((kind, written[HEADER.size : HEADER.size + size]))
        assert written[HEADER.size + size] == 0xCE
        written = written[HEADER.size + size + 1 :]
    return found


class Transport:
    """What the broker has sent: a frame for each thing it told."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._read_buffer = b""
        self._seen = 0

    def write(self, frames: bytes) -> None:
        if self._bus.error is not None:
            raise self._bus.error
        self._bus.written.append(frames)

    def having_timeout(self, seconds: float) -> Any:
        assert seconds == 0
        return threading.Lock()

    def _quick_recv(self, _count: int) -> bytes:
        if not self._bus.told:
            raise TimeoutError
        return (HEADER.pack(1, 2, 4) + b"told" + b"\xce") * len(self._bus.told)


class Pool:
    """One connection of the library."""

    def __init__(self, connection: Any) -> None:
        self.free = [connection]

    def get(self) -> Any:
        return self.free.pop()

    def put(self, connection: Any) -> None:
        self.free.append(connection)


class Side:
    """A server's channel for answers on a fake bus."""

    def __init__(self, *, bus: Any = None, compression: str | None = None) -> None:
        self.bus = bus or Bus()
        self.connection = SimpleNamespace(
            channel=SimpleNamespace(connection=self.bus),
            kombu_compression=compression,
            direct_mandatory_flag=True,
            _connection_lock=threading.RLock(),
        )
        self.pool = Pool(self.connection)
        self.channel = ReplyChannel(self.pool)
        self.afterwards = Afterwards()
        self.undelivered = Undelivered(clock=lambda: 0.0)
        self.obsolete = ObsoleteReplyQueuesCache()

    def message(self, msg_id: str | None = "7") -> Any:
        driver = SimpleNamespace(
            _get_connection=lambda _purpose: contextlib.nullcontext(),
            missing_destination_retry_timeout=60,
        )
        return QuicklyAnswered(
            self.afterwards,
            self.undelivered,
            self.channel,
            SimpleNamespace(driver=driver),
            *({}, {}, "unique", msg_id, "reply_q", None, self.obsolete, None),
        )


def sizes(side: Side) -> list[int]:
    """How many answers each write had."""
    return [len(frames_of(each)) // 3 for each in side.bus.written]


def a_few_sent(side: Side, number: int = 3) -> None:
    for each in range(number):
        side.message(str(each)).reply(each)
