"""Objects and contexts to their wire forms and back (reference page rpc, section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import oslo_messaging
from oslo_serialization import jsonutils

from scheduler import errors, objects
from scheduler.rpc.context import RequestContext

NAME_KEY: Final = "nova_object.name"

DECODE_ERRORS: Final = (LookupError, TypeError, ValueError, AttributeError)
"""Errors of decoding code on malformed input, besides those of this project."""


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
            if NAME_KEY in entity:
                return _decoded(entity)
            return {key: self._inside(key, ctxt, value) for key, value in entity.items()}
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
        del ctxt
        return jsonutils.to_primitive(objects.to_plain(entity))


class RequestContextSerializer(oslo_messaging.NoOpSerializer):
    """Contexts, on top of the serializer *entities* for everything else: of objects by default."""

    def __init__(self, entities: oslo_messaging.NoOpSerializer | None = None) -> None:
        self._entities = entities or ObjectSerializer()

    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """As the inner serializer does."""
        return self._entities.serialize_entity(ctxt, entity)

    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:
        """As the inner serializer does."""
        return self._entities.deserialize_entity(ctxt, entity)

    def serialize_context(self, ctxt: RequestContext | Mapping[str, Any]) -> dict[str, Any]:
        """The context's keys; a plain mapping is passed on."""
        return ctxt.to_dict() if isinstance(ctxt, RequestContext) else dict(ctxt)

    def deserialize_context(self, ctxt: RequestContext | Mapping[str, Any]) -> RequestContext:
        """The context of a message, from now on the current one of this thread.

        One that is a context already is current.  Raises InvalidRequest if a key of it holds what
        it cannot hold.
        """
        if isinstance(ctxt, RequestContext):
            return ctxt
        try:
            return RequestContext.from_dict(ctxt)
        except DECODE_ERRORS as error:
            raise errors.InvalidRequest(field="context", reason=str(error)) from error


def _decoded(envelope: dict[str, Any]) -> Any:
    try:
        return objects.from_primitive(envelope)
    except DECODE_ERRORS as error:
        reason = f"{type(error).__name__}: {error}"
        raise errors.InvalidRequest(field=str(envelope[NAME_KEY]), reason=reason) from error
