"""Consumers on the bus: of notifications as operators have them, and compute services."""

import json
from collections.abc import Mapping
from typing import Any

import nova.conf
import oslo_messaging
from nova import objects, rpc
from nova.compute import utils
from nova.objects import base, fields

from tests.nova.inside import calls, contexts
from tests.nova.inside.demands import a_request

TOPICS = ("notifications", "versioned_notifications")

_heard: list[dict[str, Any]] = []
_asked: list[Any] = []
_built: list[dict[str, Any]] = []
_servers: list[Any] = []


class Ear:
    def info(
        self, context: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any
    ) -> None:
        del metadata
        _heard.append(
            {
                "publisher": publisher_id,
                "event": event_type,
                "payload": json.loads(json.dumps(payload, default=str)),
                "request_id": context.get("request_id"),
            }
        )


def start() -> None:
    """Listen to notifications of both forms from now on."""
    listener = oslo_messaging.get_notification_listener(
        rpc.NOTIFICATION_TRANSPORT,
        [oslo_messaging.Target(topic=topic) for topic in TOPICS],
        [Ear()],
        executor="threading",
    )
    listener.start()
    _servers.append(listener)


def heard() -> list[dict[str, Any]]:
    return list(_heard)


def forget() -> None:
    """Begin a new list of them."""
    _heard.clear()


def ask(demand: Mapping[str, Any]) -> None:
    """Ask the scheduler for hosts, and keep the request for :func:`emit`."""
    request = a_request(demand)
    _asked[:] = [request.obj_clone()]
    calls.ask(request, demand["uuids"], returns_objects=True, alternates=False)


def emit() -> None:
    """Send what Nova's own scheduler sends when it begins with the request asked last."""
    (request,) = _asked
    legacy = {"request_spec": request.to_legacy_request_spec_dict()}
    event = "scheduler.select_destinations.start"
    rpc.get_notifier("scheduler", nova.conf.CONF.host).info(contexts.admin(), event, legacy)
    utils.notify_about_scheduler_action(
        contexts.admin(),
        request,
        action=fields.NotificationAction.SELECT_DESTINATIONS,
        phase=fields.NotificationPhase.START,
    )


class Compute:
    """Takes orders to build and remembers them."""

    target = oslo_messaging.Target(version="6.5")

    def build_and_run_instance(self, context: Any, instance: Any, **arguments: Any) -> None:
        """The order, as a compute service of this release gets it."""
        del context
        _built.append(
            {
                "uuid": instance.uuid,
                "node": arguments["node"],
                "zone": instance.availability_zone,
                "alternates": [each.service_host for each in arguments["host_list"]],
                "is_selection": all(
                    isinstance(each, objects.Selection) for each in arguments["host_list"]
                ),
                "limits": type(arguments["limits"]).__name__,
                "retry": arguments["filter_properties"]["retry"],
            }
        )


def serve_compute(hosts: list[str]) -> None:
    """Be the compute service of each of those hosts."""
    for host in hosts:
        target = oslo_messaging.Target(topic="compute", server=host)
        server = rpc.get_server(target, [Compute()], serializer=base.NovaObjectSerializer())
        server.start()
        _servers.append(server)


def built() -> list[dict[str, Any]]:
    return list(_built)
