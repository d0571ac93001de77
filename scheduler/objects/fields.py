"""Field types of wire objects: accepted, kept and emitted values.

Follows reference page objects, section 1.2.  One conversion serves construction, assignment
and decoding; ``exact`` lets the caller skip it for a value that already has the right type.
"""

import datetime
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import UnionType
from typing import Any, get_args, get_origin
from uuid import UUID

from oslo_utils import strutils, versionutils

from scheduler import errors

UNSET: Any = object()
"""Marks the absence of a default."""

CONVERSION_ERRORS = (ValueError, TypeError, OverflowError)

LARGEST_SIZE = 2**31 - 1
"""The largest number in a column of Nova's; products and sums of such fit into 64 bits."""

Manifest = Mapping[str, str]

NAME_KEY = "nova_object.name"
"""The key of an envelope that names the class."""


class BadValue(ValueError):
    """A value that a field cannot hold; *path* leads to it from the object being read."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def inside(self, part: str) -> "BadValue":
        """The same error with a path that starts one level further out."""
        joint = "." if self.path and not self.path.startswith("[") else ""
        return BadValue(self.reason, f"{part}{joint}{self.path}")


def located(part: str, error: Exception) -> BadValue:
    """Put *part* in front of the path of a conversion error of any class."""
    if isinstance(error, BadValue):
        return error.inside(part)
    return BadValue(str(error), part)


class Kind:
    """A type of values: ``convert`` coerces or raises, ``encode`` gives the wire form."""

    def __init__(
        self, convert: Callable[[Any], Any], exact: type | None = None, plain_on_wire: bool = True
    ) -> None:
        self.convert = convert
        self.exact = exact
        self.plain_on_wire = plain_on_wire

    def encode(self, value: Any, manifest: Manifest | None) -> Any:
        """The JSON value of *value*; *manifest* names versions for nested objects."""
        return value


class _Formatted(Kind):
    """A scalar that is text on the wire and something better in memory."""

    def __init__(self, convert: Callable[[Any], Any], form: Callable[[Any], str]) -> None:
        super().__init__(convert, plain_on_wire=False)
        self.form = form

    def encode(self, value: Any, manifest: Manifest | None) -> Any:
        return self.form(value)


def _to_text(value: Any) -> str:
    if isinstance(value, (str, int, float, datetime.datetime)):
        return str(value)
    raise ValueError(f"text is needed, not {type(value).__name__}")


def _to_size(value: Any) -> int:
    number = int(value)
    if 0 <= number <= LARGEST_SIZE:
        return number
    raise ValueError(f"not a number from 0 to {LARGEST_SIZE}")


def _to_datetime(value: Any) -> datetime.datetime:
    moment = (
        value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(value)
    )
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)


def _from_datetime(value: datetime.datetime) -> str:
    text = value.isoformat(timespec="seconds")
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def _to_predicate(value: Any) -> str:
    text = _to_text(value)
    try:
        versionutils.VersionPredicate(text)
    except ValueError as error:
        reason = f"{text!r} is not a version predicate such as '>=2.6,<3.0'"
        raise ValueError(reason) from error
    return text


SIZE = Kind(_to_size)
FLEXIBLE_BOOL = Kind(lambda value: strutils.bool_from_string(str(value)), bool)
PREDICATE = Kind(_to_predicate)
IP = _Formatted(ipaddress.ip_address, str)
KINDS: dict[Any, Kind] = {
    str: Kind(_to_text, str),
    int: Kind(int, int),
    float: Kind(float, float),
    bool: Kind(bool, bool),
    UUID: Kind(str, str),
    datetime.datetime: _Formatted(_to_datetime, _from_datetime),
    ipaddress.IPv4Address: _Formatted(ipaddress.IPv4Address, str),
    ipaddress.IPv6Address: _Formatted(ipaddress.IPv6Address, str),
}
"""The kinds that are named by a type of Python's.  A UUID is kept as text."""


def kind_of(kind: Any) -> Kind:
    """*kind*, or the one that a type names: ``dict[str, int | None]``, the class of an object."""
    if isinstance(kind, Kind) or kind in KINDS:
        return KINDS.get(kind, kind)
    inner = get_args(kind)
    if get_origin(kind) is dict:
        nullable = isinstance(inner[1], UnionType)
        return DictOf(get_args(inner[1])[0] if nullable else inner[1], nullable)
    if inner:
        return (SetOf if get_origin(kind) is set else ListOf)(inner[0])
    return ObjectOf(kind)


class EnumOf(Kind):
    """One of *values*; *canonical* maps spellings first.

    A *strict* one refuses other text.  The others keep it: a newer peer's addition to a field
    that scheduling never reads must not fail the request (section 2.5).
    """

    def __init__(
        self,
        values: Iterable[str],
        canonical: Callable[[str], str] | None = None,
        strict: bool = True,
    ) -> None:
        super().__init__(self._checked)
        self.values = frozenset(values)
        self.canonical = canonical
        self.strict = strict

    def _checked(self, value: Any) -> str:
        text = _to_text(value)
        if text in self.values:
            return text
        canonical = self.canonical(text) if self.canonical else text
        if canonical in self.values:
            return canonical
        if self.strict:
            raise ValueError(f"{text!r} is none of {', '.join(sorted(self.values))}")
        return text


class ListOf(Kind):
    """A list whose elements are converted; any iterable but text and mappings is taken."""

    def __init__(self, element: Any) -> None:
        super().__init__(self._converted, plain_on_wire=False)
        self.element = kind_of(element)

    def _converted(self, value: Any) -> list[Any]:
        exact, convert = self.element.exact, self.element.convert
        values = _elements(value)
        try:
            return [v if type(v) is exact else convert(v) for v in values]
        except CONVERSION_ERRORS:
            pass
        return [_converted_at(f"[{i}]", convert, v) for i, v in enumerate(values)]

    def encode(self, value: Any, manifest: Manifest | None) -> Any:
        if self.element.plain_on_wire:
            return list(value)
        encode = self.element.encode
        return [encode(v, manifest) for v in value]


class SetOf(ListOf):
    """A set in memory, a sorted list on the wire."""

    def _converted(self, value: Any) -> Any:
        return set(super()._converted(value))

    def encode(self, value: Any, manifest: Manifest | None) -> Any:
        return sorted(value)


class DictOf(Kind):
    """A mapping from text to converted values, with nulls where *nullable*."""

    def __init__(self, element: Any, nullable: bool = False) -> None:
        super().__init__(self._converted, plain_on_wire=False)
        self.element = kind_of(element)
        self.nullable = nullable

    def _converted(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError(f"a mapping is needed, not {type(value).__name__}")
        exact = self.element.exact
        result = {}
        for key, item in value.items():
            if type(key) is not str:
                raise ValueError(f"keys must be text, not {type(key).__name__}")
            if type(item) is not exact and not (item is None and self.nullable):
                item = _converted_at(f"[{key!r}]", self.element.convert, item)
            result[key] = item
        return result

    def encode(self, value: Any, manifest: Manifest | None) -> Any:
        if self.element.plain_on_wire:
            return dict(value)
        return {
            key: None if item is None else self.element.encode(item, manifest)
            for key, item in value.items()
        }


class ObjectOf(Kind):
    """Exactly one class of objects, as an object or as its envelope.

    With *plain*, other values are read by the class's ``read_dict``: senders from before
    envelopes use them.
    """

    def __init__(self, cls: Any, plain: bool = False) -> None:
        super().__init__(self._converted, plain_on_wire=False)
        self.cls = cls
        self.plain = plain

    def _converted(self, value: Any) -> Any:
        if isinstance(value, self.cls):
            return value
        name = value.get(NAME_KEY) if type(value) is dict else None
        if name == self.cls.__name__:
            try:
                return self.cls.read(value)
            except errors.UnsupportedObjectError as error:
                raise BadValue(error.format_message()) from error
        if name is None and self.plain and not hasattr(value, "encoded"):
            return self.cls.read_dict(value)
        raise ValueError(f"a {self.cls.__name__} object is needed, not {described(value)}")

    def encode(self, value: Any, manifest: Manifest | None) -> Any:
        return value.encoded(manifest)


def described(value: Any) -> str:
    """The class that the envelope *value* names, or its type; for messages."""
    if isinstance(value, dict) and NAME_KEY in value:
        return str(value[NAME_KEY])
    return type(value).__name__


def mapping(value: Any, path: str = "") -> Mapping[str, Any]:
    """Return *value*, which is found at *path*; raise BadValue if it is no mapping."""
    if not isinstance(value, Mapping):
        raise BadValue(f"a mapping is needed, not {described(value)}", path)
    return value


def _elements(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    if isinstance(value, (str, bytes, Mapping)):
        raise ValueError(f"a list is needed, not {type(value).__name__}")
    return list(value)


def _converted_at(part: str, convert: Callable[[Any], Any], value: Any) -> Any:
    if value is None:
        raise BadValue("null is not allowed here", part)
    try:
        return convert(value)
    except CONVERSION_ERRORS as exc:
        raise located(part, exc) from exc


# Slots: reading and writing a rich request took 15 % more time without them.
@dataclass(slots=True, eq=False)
class Field:
    """One row of a class's table of fields.

    *default* replaces a null where null is not allowed.  An unset field reads as *unset*, else
    as *default*.  Both may be factories.  *since* is the class version that brought the field;
    older readers do not get it.  *sensitive* values are not shown.
    """

    kind: Any
    nullable: bool = False
    default: Any = UNSET
    _: KW_ONLY
    unset: Any = UNSET
    since: tuple[int, int] | None = None
    read_only: bool = False
    sensitive: bool = False
    exact: type | None = field(init=False)
    convert: Callable[[Any], Any] = field(init=False)

    def __post_init__(self) -> None:
        self.kind = kind_of(self.kind)
        self.exact, self.convert = self.kind.exact, self.kind.convert
        if self.unset is UNSET:
            self.unset = self.default

    def accept(self, name: str, value: Any) -> Any:
        """Coerce *value*, or raise :class:`BadValue` whose path starts with *name*."""
        if value is None:
            if self.nullable:
                return None
            if self.default is UNSET:
                raise BadValue("cannot be null", name)
            return made(self.default)
        try:
            return self.convert(value)
        except CONVERSION_ERRORS as exc:
            raise located(name, exc) from exc


def made(default: Any) -> Any:
    """The value of a default: its factory's product, or itself."""
    return default() if callable(default) else default


def fields(kind: Any, names: str, **options: Any) -> dict[str, Field]:
    """Rows for all *names*, words separated by blanks, with the same kind and options."""
    return {name: Field(kind, **options) for name in names.split()}


def size_of_flavor(name: str, doc: str) -> Any:
    """A property that reads *name* of the flavor; 0 when unset, InvalidRequest without one."""

    def read(obj: Any) -> int:
        if obj.flavor is None:
            field = f"{type(obj).__name__}.flavor"
            reason = "the request has none, and no instance_type"
            raise errors.InvalidRequest(field=field, reason=reason)
        return getattr(obj.flavor, name) or 0

    return property(read, doc=doc)
