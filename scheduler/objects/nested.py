"""Objects inside objects: fields that hold one, and objects that are lists of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from scheduler import errors
from scheduler.objects import registry
from scheduler.objects.base import WireObject, described, within_depth
from scheduler.objects.fields import BadValue, Field, Kind, ListOf, Manifest


class OpaqueObject:
    """A nested object of a class we do not know: carried, and emitted exactly as received."""

    def __init__(self, envelope: dict[str, Any]) -> None:
        registry.check_namespace(envelope)
        self.envelope = within_depth("", envelope)

    def obj_to_primitive(self) -> dict[str, Any]:
        """The envelope as it came."""
        return self.envelope

    def encoded(self, manifest: Manifest | None) -> dict[str, Any]:  # noqa: ARG002
        """The envelope as it came: there is nothing we could fit to another version."""
        return self.envelope

    def __repr__(self) -> str:
        return f"OpaqueObject({self.envelope.get(registry.NAME_KEY)})"


class ObjectOf(Kind):
    """Exactly one class of objects, as an object or as its envelope.

    *plain* reads whatever else may stand there, for senders from before envelopes.
    """

    def __init__(
        self, cls: type[WireObject], plain: Callable[[Any], WireObject] | None = None
    ) -> None:
        super().__init__(self._converted, plain_on_wire=False)
        self.cls = cls
        self.plain = plain

    def _converted(self, value: Any) -> WireObject:
        if isinstance(value, self.cls):
            return value
        name = value.get(registry.NAME_KEY) if type(value) is dict else None
        if name == self.cls.__name__:
            try:
                return self.cls.read(value)
            except errors.UnsupportedObjectError as error:
                raise BadValue(error.format_message()) from error
        if name is None and self.plain is not None and not isinstance(value, WireObject):
            return self.plain(value)
        raise ValueError(f"a {self.cls.__name__} object is needed, not {described(value)}")

    def encode(self, value: Any, manifest: Manifest | None) -> Any:
        return value.encoded(manifest)


class AnyObject(Kind):
    """Any object; of an unknown class it is kept as an :class:`OpaqueObject`."""

    def __init__(self) -> None:
        super().__init__(self._converted, plain_on_wire=False)

    def _converted(self, value: Any) -> WireObject | OpaqueObject:
        if isinstance(value, (WireObject, OpaqueObject)):
            return value
        if type(value) is not dict or registry.NAME_KEY not in value:
            raise ValueError(f"an object is needed, not {described(value)}")
        cls = registry.find(value[registry.NAME_KEY])
        return OpaqueObject(value) if cls is None else cls.read(value)  # type: ignore[attr-defined]

    def encode(self, value: Any, manifest: Manifest | None) -> Any:
        return value.encoded(manifest)


class ListObject(WireObject):
    """An object that is a list of objects (section 1.4); a new one is empty."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**{"objects": [], **values})

    def __len__(self) -> int:
        return len(self.objects)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.objects)

    def __contains__(self, item: object) -> bool:
        return item in self.objects

    def __getitem__(self, index: Any) -> Any:
        return self.objects[index]


def elements(cls: type[WireObject]) -> dict[str, Field]:
    """The table of fields of a list of *cls*."""
    return {"objects": Field(ListOf(ObjectOf(cls)), unset=list)}
