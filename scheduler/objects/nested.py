"""Objects inside objects, lists of objects, and objects as plain values (sections 1.4, 1.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler import errors
from scheduler.objects import registry
from scheduler.objects.base import ADDRESSES, WireObject, described, within_depth
from scheduler.objects.fields import BadValue, Field, Kind, ListOf, Manifest


class OpaqueObject:
    """A nested object of an unknown class, carried and emitted exactly as received."""

    def __init__(self, envelope: dict[str, Any]) -> None:
        registry.check_namespace(envelope)
        self.envelope = within_depth("", envelope)

    def obj_to_primitive(self) -> dict[str, Any]:
        """The envelope as received."""
        return self.envelope

    def encoded(self, manifest: Manifest | None) -> dict[str, Any]:  # noqa: ARG002
        """The envelope as received; it cannot be fitted to another version."""
        return self.envelope

    def __repr__(self) -> str:
        return f"OpaqueObject({self.envelope.get(registry.NAME_KEY)})"


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


class ObjectOf(AnyObject):
    """Exactly one class of objects, as an object or as its envelope.

    With *plain*, other values are read by the class's ``read_dict``: senders from before
    envelopes use them.
    """

    def __init__(self, cls: type[WireObject], plain: bool = False) -> None:
        super().__init__()
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
        if name is None and self.plain and not isinstance(value, WireObject):
            return self.cls.read_dict(value)
        raise ValueError(f"a {self.cls.__name__} object is needed, not {described(value)}")


class ListObject(WireObject):
    """An object that is a list of objects of one class (section 1.4); a new one is empty."""

    def __init_subclass__(cls, of: type[WireObject], version: str) -> None:
        cls.VERSION = version
        cls.FIELDS = {"objects": Field(ListOf(ObjectOf(of)), unset=list)}
        super().__init_subclass__()

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


def to_plain(value: Any) -> Any:
    """*value* with every object in it as the dict of its set and computed fields.

    List objects become lists, sets sorted lists, addresses text; datetimes stay datetimes.
    """
    if isinstance(value, OpaqueObject):
        value = value.envelope
    if isinstance(value, (ListObject, list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, WireObject):
        computed = {name: getattr(value, name) for name in value.COMPUTED}
        return {k: to_plain(v) for k, v in {**value.set_fields(), **computed}.items()}
    if isinstance(value, dict):
        inner = value.get(registry.DATA_KEY, value) if registry.NAME_KEY in value else value
        return {key: to_plain(item) for key, item in inner.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value) if isinstance(value, ADDRESSES) else value
