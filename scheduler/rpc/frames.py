"""Frames of AMQP, several at a time: for a socket one costs as much as many.

Every write wakes the broker up, which on a busy machine takes the processor from who has written.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Any, Final

from amqp.method_framing import frame_writer

_METHOD_FRAME: Final = 1
_HEADER: Final = ">BHI"
_HEADER_BYTES: Final = 7


class Outbox:
    """Keeps what is to go out on *bus*, a connection of the AMQP library, until it is sent."""

    def __init__(self, bus: Any) -> None:
        self._bus = bus
        self._frames: list[bytes] = []
        self._put = frame_writer(bus, self)

    def put(self, channel: Any, method: Any, arguments: bytes, content: Any = None) -> None:
        """Have the frames of a *method* of *channel* leave with the next :meth:`send`."""
        self._put(_METHOD_FRAME, channel.channel_id, method, arguments, content)

    def write(self, frames: Any) -> None:
        """What the library's writer of frames takes for a socket."""
        self._frames.append(bytes(frames))

    def send(self) -> None:
        """Send all that was put in; raises what the library does, and nothing is kept then."""
        frames, self._frames = self._frames, []
        if frames:
            self._bus.transport.write(b"".join(frames))


def has_frame(buffer: bytes) -> bool:
    """Whether *buffer* begins with a whole frame."""
    if len(buffer) < _HEADER_BYTES:
        return False
    size: int = unpack_from(_HEADER, buffer)[2]
    return len(buffer) > _HEADER_BYTES + size
