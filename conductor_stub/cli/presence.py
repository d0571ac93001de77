"""Waiting until the services that a new server needs answer on the message bus.

A cast to a topic on which nobody ever listened is lost without a word, so ask first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import oslo_messaging as messaging
from oslo_messaging.transport import RPCTransport

from conductor_stub.cli import base
from scheduler.cli import on_bus
from scheduler.rpc.base_client import BaseClient
from scheduler.rpc.context import get_admin_context

PROGRAMS: Final = {
    "conductor": "nova-conductor-stub serve",
    "scheduler": "nova-scheduler",
    "compute": "nova-compute-stub",
}
"""Which program is which service, and listens on the topic of that name unless configured."""

PATIENCE_SECONDS: Final = 30.0
PING_SECONDS: Final = 1.0


def await_services(
    transport: RPCTransport, timeout_seconds: float, tell: Callable[[str], None]
) -> None:
    """Return when each of the services has answered.

    Raises Failed, which names the program, for one that is silent for *timeout_seconds*, at
    most half a minute.
    """
    patience = min(timeout_seconds, PATIENCE_SECONDS)
    for service, program in PROGRAMS.items():
        topic = transport.conf.scheduler_topic if service == "scheduler" else service
        deadline = time.monotonic() + patience
        client = BaseClient(transport, topic, retry=on_bus.BROKER_RETRIES)
        was_told = False
        while not _answers(client):
            if time.monotonic() >= deadline:
                raise base.Failed(
                    reason=f"nothing answers on topic {topic!r}: is {program} running on this bus?"
                )
            if not was_told:
                tell(f"waiting for {program}")
                was_told = True


def _answers(client: BaseClient) -> bool:
    try:
        client.ping(get_admin_context(), "boot", PING_SECONDS)
    except messaging.MessagingTimeout:
        return False
    except on_bus.UNDELIVERED as error:
        raise base.Failed(reason=f"the message bus cannot be used: {error}") from error
    return True
