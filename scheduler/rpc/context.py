"""The context and the objects that travel in messages (reference page rpc, 4, 11 and 12)."""

import copy
import datetime
from collections.abc import Mapping
from typing import Any, Final, Self

import oslo_messaging
from oslo_context import context as oslo_context
from oslo_serialization import jsonutils
from oslo_utils import timeutils

from scheduler import errors, objects
from scheduler.objects.fields import NAME_KEY

READ_DELETED: Final = ("no", "yes", "only")
ADMIN_ROLE: Final = "admin"

CATALOG_TYPES: Final = frozenset(
    {
        "volume", "volumev2", "volumev3", "block-storage", "key-manager", "placement", "image",
        "network", "accelerator", "sharev2",
    }
)  # fmt: skip
"""Services that some release keeps in the catalog; the rest of it is dropped."""

OWN_KEYS: Final = (
    "read_deleted", "remote_address", "timestamp", "quota_class", "service_catalog",
    "instance_lock_checked", "trace_info",
)  # fmt: skip
"""Keys that oslo.context does not know."""
DECODE_ERRORS: Final = (LookupError, TypeError, ValueError, AttributeError)
"""Errors of decoding code on malformed input, besides those of this project."""


class RequestContext(oslo_context.RequestContext):
    """Who asks, in which request, with which rights: Nova's keys on the bus, both ways.

    A new context becomes the current one of its thread (or greenlet), which is where log lines
    take request id, user and project from; ``overwrite=False`` keeps the present one.
    """

    FROM_DICT_EXTRA_KEYS = [*OWN_KEYS, "arrived_at", "is_redelivered"]  # the server sets these two

    def __init__(
        self,
        user_id: str | None = None,
        project_id: str | None = None,
        *,
        read_deleted: str | None = None,
        remote_address: str | None = None,
        timestamp: str | datetime.datetime | None = None,
        quota_class: str | None = None,
        service_catalog: list[dict[str, Any]] | None = None,
        instance_lock_checked: bool | None = None,
        trace_info: dict[str, Any] | None = None,
        arrived_at: float | None = None,
        is_redelivered: bool = False,
        **kwargs: Any,
    ) -> None:
        """Raises ValueError for a *read_deleted* or *timestamp* that cannot be.

        *arrived_at* is when the message came off the bus, on the monotonic clock; state that is
        read after it is new enough for the request.  *is_redelivered*: the broker had sent it to
        somebody before, who may still be at it.  Neither is ever sent.
        """
        self.arrived_at = arrived_at
        self.is_redelivered = bool(is_redelivered)
        self.read_deleted = _checked_read_deleted(read_deleted)
        self.remote_address = remote_address
        self.timestamp = _parsed_time(timestamp)
        self.quota_class = quota_class
        self.service_catalog = _known_services(service_catalog or [])
        self.instance_lock_checked = bool(instance_lock_checked)
        self.trace_info = trace_info
        super().__init__(user_id=user_id, project_id=project_id, **kwargs)

    def check_is_admin(self) -> bool:
        """Value of ``is_admin`` when the sender left it open: true when the role is there."""
        sent = super().check_is_admin()
        if sent is not None:
            return bool(sent)
        return ADMIN_ROLE in (role.lower() for role in self.roles)

    def to_dict(self) -> dict[str, Any]:
        """The keys that any release from Havana on expects, without their ``_context_`` prefix."""
        values: dict[str, Any] = super().to_dict()
        values.update({name: getattr(self, name) for name in OWN_KEYS})
        values.update(
            user_id=self.user_id,
            tenant=self.project_id,
            user_name=self.user_name,
            project_name=self.project_name,
            timestamp=self.timestamp.isoformat(timespec="microseconds"),
        )
        if self.trace_info is None:
            del values["trace_info"]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], **kwargs: Any) -> Self:
        """Rebuild a context from the keys of *values* that are known; ValueError for bad ones."""
        given = values.get
        return super().from_dict(
            dict(values),
            user_id=given("user_id") or given("user"),
            project_id=given("project_id") or given("project") or given("tenant"),
            is_admin=given("is_admin"),  # absent is open, and not no
            read_only=bool(given("read_only")),
            show_deleted=bool(given("show_deleted")),
            **kwargs,
        )

    def elevated(self, read_deleted: str | None = None) -> Self:
        """A copy with an administrator's rights; this context keeps its own."""
        elevated = copy.copy(self)
        elevated.roles = list(self.roles)
        if ADMIN_ROLE not in elevated.roles:
            elevated.roles.append(ADMIN_ROLE)
        elevated.is_admin = True
        if read_deleted is not None:
            elevated.read_deleted = _checked_read_deleted(read_deleted)
        return elevated

    def redacted_copy(self, **kwargs: Any) -> Self:
        """The copy that goes out with notifications: no token, address or catalog."""
        return super().redacted_copy(**{"overwrite": False, **kwargs})

    def get_logging_values(self) -> dict[str, Any]:
        """Values for log formats: no token, no key of a profiler, and no catalog, for its size."""
        values: dict[str, Any] = super().get_logging_values()
        values.pop("service_catalog", None)
        values.pop("trace_info", None)
        return values


def get_admin_context(read_deleted: str = "no") -> RequestContext:
    """A context for the service's own work: nobody's, with an administrator's rights."""
    return RequestContext(is_admin=True, read_deleted=read_deleted, overwrite=False)


def _checked_read_deleted(value: str | None) -> str:
    if value is None:
        return READ_DELETED[0]
    if value not in READ_DELETED:
        raise ValueError(f"read_deleted can only be one of {', '.join(READ_DELETED)}: {value!r}")
    return value


def _known_services(catalog: Any) -> list[dict[str, Any]]:
    if not isinstance(catalog, list) or not all(isinstance(each, dict) for each in catalog):
        raise ValueError("service_catalog is no list of dicts")
    kinds = [(entry, entry.get("type")) for entry in catalog]
    return [entry for entry, kind in kinds if isinstance(kind, str) and kind in CATALOG_TYPES]


def _parsed_time(value: str | datetime.datetime | None) -> datetime.datetime:
    if value is None:
        return timeutils.utcnow()
    try:
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        return timeutils.normalize_time(value)
    except (ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"timestamp is no time: {error}") from error


class ObjectSerializer(oslo_messaging.NoOpSerializer):
    """Arguments and results: objects as envelopes, at any depth of lists and dicts."""

    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """The wire form of *entity*; a set becomes a list, anything unknown stays as it is."""
        if hasattr(entity, "obj_to_primitive"):
            return entity.obj_to_primitive()
        if isinstance(entity, Mapping):
            return {key: self.serialize_entity(ctxt, value) for key, value in entity.items()}
        if isinstance(entity, list | tuple | set | frozenset):
            return [self.serialize_entity(ctxt, element) for element in entity]
        return entity

    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """The objects of *entity*, which is what a JSON parser made of the message.

        Raises InvalidRequest (or another 4xx error of this project) for a malformed envelope.
        """
        if isinstance(entity, dict):
            if NAME_KEY not in entity:
                return {key: self._inside(key, ctxt, value) for key, value in entity.items()}
            try:
                return objects.from_primitive(entity)
            except DECODE_ERRORS as error:
                reason = f"{type(error).__name__}: {error}"
                raise errors.InvalidRequest(field=str(entity[NAME_KEY]), reason=reason) from error
        if isinstance(entity, list | tuple):
            return [self._inside(f"[{i}]", ctxt, each) for i, each in enumerate(entity)]
        return entity

    def _inside(self, place: str, ctxt: Any, entity: Any) -> Any:
        try:
            return self.deserialize_entity(ctxt, entity)
        except errors.NovaException as error:
            raise errors.placed(error, place) from error.__cause__


class NotificationSerializer(oslo_messaging.NoOpSerializer):
    """Payloads of legacy notifications: every object flattened to a plain dict of its fields."""

    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """*entity* as what a JSON text can hold."""
        return jsonutils.to_primitive(objects.to_plain(entity))


class RequestContextSerializer(oslo_messaging.NoOpSerializer):
    """Contexts, on top of the serializer *entities* for everything else: of objects by default."""

    def __init__(self, entities: oslo_messaging.NoOpSerializer | None = None) -> None:
        entities = entities or ObjectSerializer()
        self.serialize_entity: Any = entities.serialize_entity
        self.deserialize_entity: Any = entities.deserialize_entity

    def serialize_context(self, ctxt: RequestContext | Mapping[str, Any]) -> dict[str, Any]:
        """The context's keys; a plain mapping is passed on."""
        return ctxt.to_dict() if isinstance(ctxt, RequestContext) else dict(ctxt)

    def deserialize_context(self, ctxt: RequestContext | Mapping[str, Any]) -> RequestContext:
        """The context of a message, from now on the current one of this thread.

        A context already is current.  Raises InvalidRequest if a key holds what it cannot hold.
        """
        if isinstance(ctxt, RequestContext):
            return ctxt
        try:
            return RequestContext.from_dict(ctxt)
        except DECODE_ERRORS as error:
            raise errors.InvalidRequest(field="context", reason=str(error)) from error
