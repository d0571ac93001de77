"""What ``constant_server`` runs once the concurrency back end is chosen."""

import signal
import sys
import threading
import uuid
from collections.abc import Sequence
from typing import Any

import oslo_messaging

from benchmarks.fleet import FleetPlan
from scheduler import objects
from scheduler.conf import startup
from scheduler.rpc import transport

READY = "ready"
TOPIC = "scheduler"
ALTERNATES = 2


def an_answer(alternates: int = ALTERNATES) -> list[Any]:
    """What a scheduler answers to a call for one server, as primitives."""
    names = FleetPlan(hosts=alternates + 1).names
    selections = [
        objects.Selection(
            compute_node_uuid=str(uuid.UUID(int=(2 << 64) + number)),
            service_host=name,
            nodename=name,
            cell_uuid="6f70656e-7374-4a63-8b65-6c6c30303031",
            limits=objects.SchedulerLimits.from_dict({"memory_mb": 262144.0, "disk_gb": 4000.0}),
            allocation_request="null",
            allocation_request_version=None,
            availability_zone="az-1",
        )
        for number, name in enumerate(names)
    ]
    return [[each.obj_to_primitive() for each in selections]]


class Endpoint:
    """Answers ``select_destinations``."""

    target = oslo_messaging.Target(version="4.5")

    def __init__(self) -> None:
        self._answer = an_answer()

    def select_destinations(self, context: Any, **arguments: Any) -> Any:
        """The same every time."""
        del context, arguments
        return self._answer


def main(argv: Sequence[str]) -> int:
    """Serve, say so on standard output, and end on SIGTERM."""
    transport.set_defaults()
    conf = startup.parse(startup.Source(argv, "constant-server"), description=__doc__)
    bus = transport.get_transport(conf)
    target = oslo_messaging.Target(topic=TOPIC, server=conf.host)
    server = oslo_messaging.get_rpc_server(
        bus, target, [Endpoint()], access_policy=oslo_messaging.DefaultRPCAccessPolicy
    )
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_arguments: ending.set())
    server.start()
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    while not ending.wait(0.5):
        pass
    server.stop()
    server.wait()
    bus.cleanup()
    return 0
