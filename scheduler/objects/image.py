"""The image of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from scheduler.objects.base import WireObject
from scheduler.objects.fields import (
    DATETIME,
    FLEXIBLE_BOOL,
    INT,
    STR,
    UUID,
    BadValue,
    Field,
    ListOf,
    located,
)
from scheduler.objects.image_props import ImageMetaProps
from scheduler.objects.nested import ObjectOf
from scheduler.objects.registry import register

_EMPTY_FOR_NULL: dict[str, Any] = {
    **dict.fromkeys(("name", "checksum", "owner", "container_format", "disk_format"), ""),
    **dict.fromkeys(("size", "virtual_size"), 0),
}


@register
class ImageMeta(WireObject):
    """An image as Glance describes it; ``properties`` reads as empty when unset."""

    VERSION = "1.8"
    FIELDS = {
        "id": Field(UUID),
        "name": Field(STR),
        "status": Field(STR),
        "visibility": Field(STR),
        "protected": Field(FLEXIBLE_BOOL),
        "checksum": Field(STR),
        "owner": Field(STR),
        "size": Field(INT),
        "virtual_size": Field(INT),
        "container_format": Field(STR),
        "disk_format": Field(STR),
        "created_at": Field(DATETIME, nullable=True),
        "updated_at": Field(DATETIME, nullable=True),
        "tags": Field(ListOf(STR)),
        "direct_url": Field(STR),
        "min_ram": Field(INT),
        "min_disk": Field(INT),
        "properties": Field(ObjectOf(ImageMetaProps), unset=ImageMetaProps),
    }

    @classmethod
    def read_dict(cls, image: Mapping[str, Any] | None) -> Self:
        """As :meth:`from_dict`, raising BadValue with a path relative to the image."""
        values = dict(image or {})
        properties = values.pop("properties", None)
        meta = cls()
        for name, value in values.items():
            field = cls.FIELDS.get(name)
            if field is not None:
                value = _EMPTY_FOR_NULL.get(name) if value is None else value
                meta.__dict__[name] = field.accept(name, value)
        try:
            meta.properties = (
                properties
                if isinstance(properties, ImageMetaProps)
                else ImageMetaProps.read_dict(properties or {})
            )
        except BadValue as exc:
            raise located("properties", exc) from exc
        return meta

    @classmethod
    def from_dict(cls, image: Mapping[str, Any] | None) -> Self:
        """Read the dict form of an image; null and ``{}`` give one with empty properties.

        Unknown keys are ignored; a bad value raises InvalidRequest naming the field.
        """
        try:
            return cls.read_dict(image)
        except BadValue as exc:
            raise cls.complaint(exc) from exc
