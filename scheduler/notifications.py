"""Notifications to the bus: payloads in both forms, and their senders (page rpc, 13 and 13.1)."""

import contextlib
import logging as standard_logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import oslo_messaging
from oslo_log import log as logging
from oslo_messaging.transport import NotificationTransport

from scheduler import errors, objects
from scheduler.objects import registry
from scheduler.objects.base import envelope
from scheduler.rpc.context import NotificationSerializer, RequestContextSerializer
from scheduler.threads import BatchThread

LOG = logging.getLogger(__name__)

Payload = dict[str, Any]

FLAVOR: Final = (
    "flavorid", "memory_mb", "vcpus", "root_gb", "ephemeral_gb", "name", "swap", "rxtx_factor",
    "vcpu_weight", "disabled", "is_public", "extra_specs", "projects", "description",
)  # fmt: skip
CELL: Final = (
    "id", "cpuset", "pcpuset", "cpuset_reserved", "memory", "pagesize", "cpu_pinning_raw",
    "cpu_policy", "cpu_thread_policy",
)  # fmt: skip
GROUP: Final = ("uuid", "name", "user_id", "project_id", "policies", "members", "hosts", "policy")
PCI_REQUEST: Final = ("count", "spec", "alias_name", "request_id", "numa_policy")
REQUEST: Final = (
    "instance_uuid", "project_id", "user_id", "availability_zone", "num_instances", "ignore_hosts",
    "scheduler_hints",
)  # fmt: skip
IMAGE: Final = tuple(name for name in objects.ImageMeta.FIELDS if name != "properties")
UNVERSIONED: Final = "unversioned"
VERSIONED: Final = "versioned"
SELECT: Final = "scheduler.select_destinations"
LIBRARY_LOGGER: Final = "oslo_messaging.notify.messaging"
CLOSE_SECONDS: Final = 5.0
"""Longest wait of the process's end for what was not sent yet."""
LOGGED: Final = ("message_id", "event_type", "publisher_id")


def legacy_request(spec: objects.RequestSpec) -> Payload:
    """The request as plain dicts, under the key that consumers of the unversioned form know."""
    plain: Payload = objects.to_plain(spec.to_legacy_request_spec_dict())
    return {"request_spec": plain}


def request(spec: objects.RequestSpec) -> Payload:
    uuid, groups = spec.instance_uuid, spec.security_groups

    def part(name: str, make: Callable[[Any], Payload]) -> Payload | None:
        value = getattr(spec, name)
        return None if value is None else make(value)

    return _payload(
        "RequestSpecPayload",
        "1.1",
        spec,
        REQUEST,
        flavor=part("flavor", lambda it: _payload("FlavorPayload", "1.4", it, FLAVOR)),
        force_hosts=(spec.force_hosts or [None])[0],
        force_nodes=(spec.force_nodes or [None])[0],
        image=part("image", _image),
        instance_group=part("instance_group", _group),
        numa_topology=part("numa_topology", lambda it: _topology(it, uuid)),
        pci_requests=part("pci_requests", lambda it: _pci_requests(it, uuid)),
        requested_destination=part("requested_destination", _destination),
        retry=part("retry", _retry),
        security_groups=[each.get("uuid") or each.get("name") for each in groups],
    )


def legacy_failure(
    request_spec: Mapping[str, Any],
    instance_uuid: str,
    method: str,
    error: BaseException,
    state: str = "error",
) -> Payload:
    """*method* failed and left the server in *state*: the conductor's and Havana's form."""
    plain: Payload = objects.to_plain(dict(request_spec))
    return {
        "request_spec": plain,
        "instance_properties": plain.get("instance_properties", {}),
        "instance_id": instance_uuid,
        "state": state,
        "method": method,
        "reason": errors.message_of(error),
    }


def _payload(name: str, version: str, obj: Any, names: Iterable[str], **more: Any) -> Payload:
    """The fields *names* of *obj*, null where unset, and *more*."""
    return envelope(name, version, {**_picked(obj, names), **more})


def _picked(obj: Any, names: Iterable[str]) -> Payload:
    """The wire form of the fields named; null where unset."""
    data = obj.obj_to_primitive()[registry.DATA_KEY]
    return {name: objects.to_plain(data.get(name)) for name in names}


def _image(image: objects.ImageMeta) -> Payload:
    properties, names = image.properties, image.properties.set_fields()
    # The versions of payload and properties rise together since 1.14 and 1.38.
    minor = int(properties.obj_to_primitive()[registry.VERSION_KEY].partition(".")[2])
    found = _payload("ImageMetaPropsPayload", f"1.{max(minor - 24, 14)}", properties, names)
    return _payload("ImageMetaPayload", "1.0", image, IMAGE, properties=found)


def _group(group: objects.InstanceGroup) -> Payload:
    rules = dict(group.get("_rules") or {})
    return _payload("ServerGroupPayload", "1.1", group, GROUP, rules=rules)


def _topology(topology: objects.InstanceNUMATopology, uuid: str | None) -> Payload:
    cells = []
    for cell in topology.cells:
        shape = objects.to_plain(cell.get("cpu_topology"))
        cells.append(_payload("InstanceNUMACellPayload", "1.2", cell, CELL, cpu_topology=shape))
    name, own = "InstanceNUMATopologyPayload", topology.get("instance_uuid") or uuid
    policy = ("emulator_threads_policy",)
    return _payload(name, "1.0", topology, policy, instance_uuid=own, cells=cells)


def _pci_requests(requests: objects.InstancePCIRequests, uuid: Any) -> Payload:
    name = "InstancePCIRequestPayload"
    asked = [_payload(name, "1.1", each, PCI_REQUEST) for each in requests.requests]
    instance_uuid = requests.get("instance_uuid") or uuid  # no HTTP # nosec B113
    data = {"instance_uuid": instance_uuid, "requests": asked}
    return envelope("InstancePCIRequestsPayload", "1.0", data)


def _destination(destination: objects.Destination) -> Payload:
    data = _picked(destination, ("host", "node", "aggregates"))
    cell = destination.get("cell")
    if cell is not None:
        names = ("uuid", "name", "disabled")
        data["cell"] = _payload("CellMappingPayload", "2.0", cell, names)
    known = {k: value for k, value in data.items() if value is not None or k == "aggregates"}
    return envelope("DestinationPayload", "1.0", known)


def _retry(retry: objects.SchedulerRetries) -> Payload:
    nodes = [node.hypervisor_hostname for node in retry.get("hosts") or ()]
    data = {"num_attempts": retry.get("num_attempts"), "hosts": nodes}
    return envelope("SchedulerRetriesPayload", "1.0", data)


class Outbox:
    """At most *limit* notifications wait here; what comes on top is dropped, and counted."""

    def __init__(self, limit: int) -> None:
        # Its thread starts with the first one, thus after the workers have been forked.
        self._thread = BatchThread("notifications", _send_all, limit, batch=1)
        self.dropped = 0
        """Number of sends dropped so far."""
        self._dropped_in_a_row = 0

    @property
    def waiting(self) -> int:
        return self._thread.waiting

    def put(self, event_type: str, send: Callable[[], None]) -> None:
        """Have *send* called soon; never waits, never raises."""
        if not self._thread.put((event_type, send)):
            if not self._dropped_in_a_row:
                text = "Notifications are dropped, %s first: the bus takes none, and %d are waiting"
                LOG.warning(text, event_type, self.waiting)
            self.dropped += 1
            self._dropped_in_a_row += 1
        elif self._dropped_in_a_row:
            LOG.warning("%d notifications were dropped", self._dropped_in_a_row)
            self._dropped_in_a_row = 0

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Send what waits, for at most *timeout_seconds*; the rest is lost, with a warning."""
        if left := self._thread.close(timeout_seconds):
            LOG.warning("%d notifications could not be sent in time", left)


def _send_all(batch: list[tuple[str, Callable[[], None]]]) -> None:
    for event_type, send in batch:
        try:
            send()
        except Exception:
            LOG.exception("The notification %s could not be sent", event_type)


class Notifier:
    """Sends notifications of one *form*, under one publisher id, through an outbox.

    Nothing is sent unless ``[oslo_messaging_notifications] driver`` names a driver and
    ``[notifications] notification_format`` includes the form.  Versioned payloads are envelopes
    and go to topics of their own.  No error, nor a silent bus, reaches the caller.
    """

    def __init__(
        self,
        transport: NotificationTransport,
        publisher_id: str,
        outbox: Outbox | None = None,
        form: str = UNVERSIONED,
    ) -> None:
        conf = transport.conf
        entities, topics = NotificationSerializer(), None
        if form == VERSIONED:
            entities = oslo_messaging.NoOpSerializer()
            topics = conf.notifications.versioned_notifications_topics
        self._notifier = oslo_messaging.Notifier(
            transport,
            publisher_id=publisher_id,
            serializer=RequestContextSerializer(entities),
            topics=topics,
        )
        self._outbox = outbox or Outbox(conf.notifications.max_waiting)
        self.enabled = bool(
            conf.oslo_messaging_notifications.driver
            and conf.notifications.notification_format in (form, "both")
        )
        """True when anything is sent: when false the payload need not be built."""

    def info(self, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        """Notify of *event_type* with priority INFO; *payload* is not to change any more."""
        self._send(self._notifier.info, context, event_type, payload)

    def error(self, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        """Notify of *event_type* with priority ERROR; *payload* is not to change any more."""
        self._send(self._notifier.error, context, event_type, payload)

    def _send(self, send: Any, context: Any, event_type: str, payload: dict[str, Any]) -> None:
        if self.enabled:
            self._outbox.put(event_type, lambda: send(context, event_type, payload))


class Notifications:
    """The notifications of one service on *host*, in both forms.

    *service* is its name in the unversioned form, such as ``scheduler``; *source* that in the
    versioned form, such as ``nova-scheduler``.
    """

    def __init__(
        self, transport: NotificationTransport, service: str, source: str, host: str
    ) -> None:
        standard_logging.getLogger(LIBRARY_LOGGER).addFilter(without_payload)
        self.outbox = Outbox(transport.conf.notifications.max_waiting)
        self.legacy = Notifier(transport, f"{service}.{host}", self.outbox)
        self.versioned = Notifier(transport, f"{source}:{host}", self.outbox, VERSIONED)

    @property
    def enabled(self) -> bool:
        return self.legacy.enabled or self.versioned.enabled

    def select_destinations(self, context: Any, phase: str, spec: objects.RequestSpec) -> None:
        """Hosts are looked for (*phase* ``start``), or have been found (``end``)."""
        event = f"{SELECT}.{phase}"
        with never_failing(event):
            if self.legacy.enabled:
                self.legacy.info(context, event, legacy_request(spec))
            if self.versioned.enabled:
                self.versioned.info(context, event, request(spec))

    def close(self) -> None:
        self.outbox.close()


@contextlib.contextmanager
def never_failing(event: str) -> Iterator[None]:
    """Within it, a payload that cannot be made of what came is logged and not sent."""
    try:
        yield
    except Exception:
        LOG.exception("The notification %s could not be made", event)


def without_payload(record: standard_logging.LogRecord) -> bool:
    """Cut an unsent notification in *record* to its ids: it may have passwords and user data."""
    arguments: Any = record.args
    if isinstance(arguments, dict) and isinstance(arguments.get("message"), dict):
        message = arguments["message"]
        record.args = {**arguments, "message": {name: message.get(name) for name in LOGGED}}
    return True
