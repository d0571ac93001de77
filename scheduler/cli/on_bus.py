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
from scheduler.cli import command
from scheduler.rpc import private, transport

UNDELIVERED: Final = (
    messaging.MessagingException,
    kombu.exceptions.KombuError,
    *transport.REFUSALS,
    OSError,
)
"""What a message that cannot be sent raises; the RPC library does not translate all of it."""
BROKER_RETRIES: Final = 2
"""A person waits: a broker that cannot be reached is given up after so many more attempts."""


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
        connection = transport.get_transport(self.conf)
        try:
            private.require_broker(connection, BROKER_RETRIES)
            yield connection
        except UNDELIVERED as error:
            raise BusUnusable(reason=str(error)) from error
        finally:
            private.close(connection)

    def tell(self, text: str) -> None:
        """One line for the person at the terminal, apart from the result."""
        sys.stderr.write(f"{self.app.NAME}: {text}\n")
