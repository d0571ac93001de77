"""Commands that send messages."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import ClassVar, Final

import kombu.exceptions
import oslo_messaging as messaging
from oslo_messaging.transport import RPCTransport

from scheduler import errors
from scheduler.broker import connecting, expected
from scheduler.cli import command
from scheduler.rpc import connection, transport

UNDELIVERED: Final = (
    messaging.MessagingException,
    kombu.exceptions.KombuError,
    *transport.REFUSALS,
    OSError,
)
"""What a message that cannot be sent raises; the RPC library does not translate all of it."""
BROKER_RETRIES: Final = 2
"""A person waits: a broker that cannot be reached is given up after so many more attempts."""
CONNECT_SECONDS: Final = 5.0
REPLY_QUEUES: Final = "reply_"
"""How the library's names of queues for answers begin; a command leaves none of its own behind."""


class BusUnusable(errors.NovaException):
    """The broker cannot be reached, or refuses this program."""

    msg_fmt = "the message bus cannot be used: %(reason)s"


class OnBus(command.Base):
    """A command that sends messages, and leaves no queue behind."""

    PARTNER: ClassVar[str] = "scheduler"

    @contextlib.contextmanager
    def bus(self) -> Iterator[RPCTransport]:
        """The message bus; ConfigurationError when it is one that nobody else can reach.

        Raises BusUnusable, also for what fails later.
        """
        if transport.is_in_process(self.conf):
            raise errors.ConfigurationError(
                option=transport.OPTION,
                reason=f"the bus inside this process reaches no {self.PARTNER}; name a broker's",
            )
        connection.TEMPORARY.add(REPLY_QUEUES)
        bus = transport.get_transport(self.conf)
        try:
            self._require_broker()
            yield bus
        except UNDELIVERED as error:
            raise BusUnusable(reason=str(error)) from error
        finally:
            bus.cleanup()

    def _require_broker(self) -> None:
        """Connect once: the library itself tries for ever to listen for the first answer."""
        trouble: connecting.Failure | None = None
        for node in expected.of_conf(self.conf).nodes:
            try:
                connecting.connect(node, CONNECT_SECONDS).release()
            except connecting.Failure as error:
                trouble = error
            else:
                return
        raise BusUnusable(reason=str(trouble))

    def tell(self, text: str) -> None:
        """One line for the person at the terminal, apart from the result."""
        sys.stderr.write(f"{self.app.NAME}: {text}\n")
