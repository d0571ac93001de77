"""The base of all wire objects: set and unset fields, envelopes, copies."""

import datetime
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from scheduler import errors
from scheduler.objects import registry
from scheduler.objects.fields import (
    UNSET,
    BadValue,
    Field,
    ListOf,
    Manifest,
    described,
    fields,
    made,
    mapping,
)
from scheduler.objects.registry import within_depth

ADDRESSES = (ipaddress.IPv4Address, ipaddress.IPv6Address)
_SHARED = frozenset((str, int, float, bool, type(None), datetime.datetime, *ADDRESSES))

PERSISTENT: dict[str, Field] = {
    **fields(datetime.datetime, "created_at updated_at deleted_at", nullable=True),
    "deleted": Field(bool, default=False),
}
"""The fields of every object with a database row of its own (section 1.5)."""
OLDEST: Final = "1.0"
FIRST_READERS: Final = {"Selection": "1.13", "NUMATopologyLimits": "1.10"}
"""Classes of an answer, and the RequestSpec from whose senders on newer than OLDEST is read.

Conductors of Queens to Train know no zone in a Selection (page objects, sections 2.4, 2.6 and 8).
"""


class WireObject:
    """An object with a table of fields, each of them set or unset.

    Set fields are ordinary attributes.  An unset one reads as the table's ``unset`` value, else
    its default, else None.  A list, dict or object read that way is stored, which keeps changes
    made in place.  Names that are no fields may be assigned and are never sent.  Bad values
    raise InvalidRequest with a dotted path (reference page objects, sections 1.2 and 1.3).
    A class with fields of its own is registered: envelopes of its name are read as this class.
    """

    VERSION: ClassVar[str] = "1.0"
    FIELDS: ClassVar[dict[str, Field]] = {}
    FILL_DEFAULTS: ClassVar[bool] = False
    DICT_FILLS_DEFAULTS: ClassVar[bool] = False
    COMPUTED: ClassVar[tuple[str, ...]] = ()
    LISTS_CHANGES: ClassVar[bool] = False
    """A new object is sent with all its fields as changed, as Nova sends it."""

    # Only objects received with another version than ours have the first two in their own dict.
    _version: str = "1.0"
    _unknown: dict[str, Any] | None = None
    # Changes listed by the sender, and names assigned since; None for objects made here.
    _changes: Sequence[Any] | None = None

    def __init_subclass__(cls) -> None:
        cls._version = cls.VERSION
        hidden = [name for name in cls.FIELDS if hasattr(cls, name)]
        if hidden:
            raise TypeError(f"{cls.__name__}: fields hidden by attributes of the class: {hidden}")
        if "FIELDS" in cls.__dict__ and registry.CLASSES.setdefault(cls.__name__, cls) is not cls:
            raise ValueError(f"a wire class named {cls.__name__} exists already")

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)
        if self.FILL_DEFAULTS:
            self.set_defaults()

    def set_defaults(self) -> None:
        for name, field in self.FIELDS.items():
            if field.default is not UNSET and name not in self.__dict__:
                self.__dict__[name] = made(field.default)

    def __setattr__(self, name: str, value: Any) -> None:
        field = self.FIELDS.get(name)
        if field is None:
            object.__setattr__(self, name, value)
            return
        if type(value) is not field.exact:
            try:
                value = field.accept(name, value)
            except BadValue as exc:
                raise self.complaint(exc) from exc
        if field.read_only and self.__dict__.get(name, value) != value:
            raise errors.ObjectActionError(
                action="assignment", reason=f"{type(self).__name__}.{name} is read-only"
            )
        self.__dict__[name] = value
        if self._changes is not None and name not in self._changes:
            self.__dict__["_changes"] = (*self._changes, name)

    def __getattr__(self, name: str) -> Any:
        field = self.FIELDS.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        if field.unset is UNSET:
            return None
        value = made(field.unset)
        if type(value) not in _SHARED:
            self.__dict__[name] = value
        return value

    @classmethod
    def complaint(cls, error: BadValue) -> errors.InvalidRequest:
        path = f"{cls.__name__}.{error.path}" if error.path else cls.__name__
        return errors.InvalidRequest(field=path, reason=error.reason)

    def is_set(self, name: str) -> bool:
        """True when the field has a value, null included; AttributeError if it is no field."""
        if name not in self.FIELDS:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        return name in self.__dict__

    obj_attr_is_set = is_set  # Nova's name

    @property
    def fields(self) -> dict[str, Field]:
        """The table of the class, under Nova's name."""
        return self.FIELDS

    @property
    def obj_fields(self) -> list[str]:
        return list(self.FIELDS)

    def set_fields(self) -> dict[str, Any]:
        """The set fields and their values, in the order of the table."""
        values = self.__dict__
        return {name: values[name] for name in self.FIELDS if name in values}

    def get(self, name: str, default: Any = None) -> Any:
        """The field's value, or *default* when unset; AttributeError if it is no field."""
        return getattr(self, name) if self.is_set(name) else default

    def __contains__(self, name: object) -> bool:
        return name in self.FIELDS and name in self.__dict__

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.set_fields())

    def keys(self) -> list[str]:
        """The names of the set fields; ``dict(obj)`` needs them."""
        return list(self.set_fields())

    def copy(self) -> Self:
        """An independent copy, which shares nothing that can change in place."""
        clone = object.__new__(type(self))
        mine = self.__dict__
        clone.__dict__.update({k: v if type(v) in _SHARED else _copied(v) for k, v in mine.items()})
        return clone

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __repr__(self) -> str:
        fields = self.FIELDS
        shown = ", ".join(
            f"{name}={'***' if fields[name].sensitive and value else repr(value)}"
            for name, value in self.set_fields().items()
        )
        return f"{type(self).__name__}({shown})"

    # -- the wire ------------------------------------------------------------------------------

    @classmethod
    def read(cls, envelope: dict[str, Any]) -> Self:
        """Decode an envelope of this class; raises :class:`BadValue` relative to the object."""
        if envelope.get(registry.NAMESPACE_KEY) != registry.NAMESPACE:
            name = f"{envelope.get(registry.NAMESPACE_KEY)}.{cls.__name__}"
            raise errors.UnsupportedObjectError(objtype=name)
        version, data = envelope.get(registry.VERSION_KEY), envelope.get(registry.DATA_KEY)
        if not isinstance(version, str) or not isinstance(data, dict):
            raise BadValue("the envelope lacks its version or its data")
        obj = object.__new__(cls)
        values, fields, unknown = obj.__dict__, cls.FIELDS, None
        for name, value in data.items():
            field = fields.get(name)
            if field is None:
                unknown = unknown or {}
                unknown[name] = within_depth(name, value)
            elif type(value) is field.exact:
                values[name] = value
            else:
                values[name] = field.accept(name, value)
        if unknown is not None:
            values["_unknown"] = unknown
        if version != cls.VERSION:
            obj._take_version(version)
        changes = envelope.get(registry.CHANGES_KEY)
        values["_changes"] = tuple(changes) if type(changes) is list else ()
        return obj

    @classmethod
    def from_dict(cls, value: Any) -> Self:
        """Build from a plain form; a bad value raises InvalidRequest with a dotted path."""
        try:
            return cls.read_dict(value)
        except BadValue as exc:
            raise cls.complaint(exc) from exc

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Build from a mapping whose other keys are ignored; raises BadValue."""
        obj = cls.read_fields(mapping(value))
        if cls.DICT_FILLS_DEFAULTS:
            obj.set_defaults()
        return obj

    @classmethod
    def read_fields(cls, values: Mapping[str, Any]) -> Self:
        """Set the fields that *values* names; raises BadValue."""
        obj = cls()
        for name, value in values.items():
            field = cls.FIELDS.get(name)
            if field is not None:
                obj.__dict__[name] = field.accept(name, value)
        return obj

    def _take_version(self, version: str) -> None:
        name = type(self).__name__
        try:
            numbers = registry.check(name, version, self.VERSION)
        except ValueError as exc:
            raise BadValue(str(exc)) from exc
        self.__dict__["_version"] = version
        if numbers < registry.parse(self.VERSION):
            self._upgrade(numbers)

    def _upgrade(self, version: registry.Version) -> None:
        """Bring data of an older version to today's meaning; for classes that need it."""

    def _downgrade(self, data: dict[str, Any], version: registry.Version) -> None:
        """Bring encoded *data* to the meaning of an older version; for classes that need it."""

    @classmethod
    def obj_from_primitive(cls, primitive: dict[str, Any], _context: Any = None) -> Any:
        """Nova's name of :func:`from_primitive`."""
        return from_primitive(primitive)

    def obj_to_primitive(self, target_version: str | None = None) -> dict[str, Any]:
        """The envelope.

        Without *target_version* every object has the version it was received with, or ours, and
        its unknown fields.  With it, this object is fitted to that version, and those in it are
        ours.
        """
        name = type(self).__name__
        if target_version is None:
            return self.encoded(None)
        if registry.check(name, target_version, self.VERSION) > registry.parse(self.VERSION):
            raise errors.IncompatibleObjectVersion(
                objname=name, objver=target_version, supported=self.VERSION
            )
        return self.encoded({name: target_version})

    def encoded(self, manifest: Manifest | None) -> dict[str, Any]:
        """The envelope, with the versions that *manifest* names or else those received."""
        name, values = type(self).__name__, self.__dict__
        data = {}
        for field_name, field in self.FIELDS.items():
            if field_name in values:
                value = values[field_name]
                if value is not None and not field.kind.plain_on_wire:
                    value = field.kind.encode(value, manifest)
                data[field_name] = value
        version = self._version if manifest is None else manifest.get(name, self.VERSION)
        if version != self.VERSION:
            self._fit(data, registry.parse(version))
        if manifest is None and self._unknown:
            data.update(self._unknown)
        found = envelope(name, version, data)
        changes = self._changes
        if changes is None:
            changes = list(data) if self.LISTS_CHANGES else ()
        elif changes:
            changes = [each for each in changes if type(each) is str and each in data]
        if changes:
            found[registry.CHANGES_KEY] = changes
        return found

    def _fit(self, data: dict[str, Any], version: registry.Version) -> None:
        if version < registry.parse(self.VERSION):
            self._downgrade(data, version)
            for name in [n for n in data if (self.FIELDS[n].since or version) > version]:
                del data[name]


def envelope(name: str, version: str, data: dict[str, Any]) -> dict[str, Any]:
    return {
        registry.NAME_KEY: name,
        registry.NAMESPACE_KEY: registry.NAMESPACE,
        registry.VERSION_KEY: version,
        registry.DATA_KEY: data,
    }


def from_primitive(envelope: Any) -> Any:
    """Decode the envelope of any known class.

    Raises UnsupportedObjectError (class or namespace unknown), IncompatibleObjectVersion
    (other major version) or InvalidRequest (a field's value, or no envelope at all).
    """
    if not isinstance(envelope, dict):
        raise errors.InvalidRequest(field="object", reason=f"no envelope: {described(envelope)}")
    name = envelope.get(registry.NAME_KEY)
    cls: Any = registry.CLASSES.get(str(name))
    if cls is None:
        raise errors.UnsupportedObjectError(objtype=name)
    try:
        return cls.read(envelope)
    except BadValue as exc:
        raise cls.complaint(exc) from exc


def older_for(spec: WireObject | None) -> dict[str, str]:
    """By class the version for the sender of a request, None of dicts, who would not read ours."""
    several = FIRST_READERS.items()
    return {name: OLDEST for name, first in several if spec is None or is_older(spec, first)}


def is_older(obj: WireObject, version: str) -> bool:
    """True when the sender of *obj* knew its class in less than *version*."""
    return registry.parse(obj._version) < registry.parse(version)


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _SHARED:
        return value
    if kind is list:
        return [v if type(v) in _SHARED else _copied(v) for v in value]
    if kind is dict:
        return {k: v if type(v) in _SHARED else _copied(v) for k, v in value.items()}
    if kind is set:
        return set(value)
    # Addresses never change in place.
    return value.copy() if isinstance(value, WireObject) else value


class ListObject(WireObject):
    """An object that is a list of objects of one class (section 1.4); a new one is empty."""

    def __init_subclass__(cls, of: type[WireObject], version: str) -> None:
        cls.VERSION = version
        cls.FIELDS = {"objects": Field(ListOf(of), unset=list)}
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
    if isinstance(value, (ListObject, list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, WireObject):
        computed = {name: getattr(value, name) for name in value.COMPUTED}
        return {k: to_plain(v) for k, v in {**value.set_fields(), **computed}.items()}
    if isinstance(value, dict):
        if registry.NAME_KEY in value and registry.DATA_KEY in value:
            return to_plain(value[registry.DATA_KEY])
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value) if isinstance(value, ADDRESSES) else value
