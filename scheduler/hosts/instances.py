"""Instances as the host table knows them: from rows, and from what compute services broadcast.

Reference pages scheduling, section 7.7, and rpc, section 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scheduler import errors, objects
from scheduler.db.fleet_rows import IMAGE_KEY_PREFIX
from scheduler.hosts import rows
from scheduler.hosts.table import HostTable

#: (property, text of its value) of one image.
Properties = frozenset[tuple[str, str]]

_NONE: Properties = frozenset()


class TrackedInstance(NamedTuple):
    """An instance on a host; ``updated_at`` in seconds since the epoch."""

    uuid: str
    host: str | None
    node: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    instance_type_id: int | None = None
    vm_state: str | None = None
    task_state: str | None = None
    updated_at: float = 0.0
    image_properties: Properties = _NONE


def tracked(instance: Any, host: str, properties: Properties = _NONE) -> TrackedInstance:
    """The tracked form of a row, or of an object of which only ``uuid`` must be set."""
    return TrackedInstance(
        uuid=instance.uuid,
        host=host,
        node=instance.node,
        project_id=instance.project_id,
        user_id=instance.user_id,
        instance_type_id=instance.instance_type_id,
        vm_state=instance.vm_state,
        task_state=instance.task_state,
        updated_at=rows.seconds(instance.updated_at or instance.created_at),
        image_properties=properties,
    )


def properties_of(image: Any) -> Properties:
    """The properties of a request's image; none without an image."""
    return _NONE if image is None else _texts(image.properties)


def recorded(system_metadata: Mapping[str, str | None] | None) -> Properties:
    """Image properties in an instance's *system_metadata*; none if they cannot be read."""
    found = {
        key[len(IMAGE_KEY_PREFIX) :]: value
        for key, value in (system_metadata or {}).items()
        if key.startswith(IMAGE_KEY_PREFIX)
    }
    try:
        return _texts(objects.ImageMetaProps.from_dict(found)) if found else _NONE
    except errors.InvalidRequest:
        return _NONE


def _texts(properties: objects.ImageMetaProps) -> Properties:
    return frozenset((name, str(value)) for name, value in properties.to_dict().items())


def update(table: HostTable, host: str, instances: Iterable[Any]) -> None:
    """Note *instances*, which were broadcast, as running on *host*."""
    for instance in instances:
        known = table.instances.get(host, {}).get(instance.uuid)
        if known is not None and not instance.is_set("system_metadata"):
            properties = known.image_properties
        else:
            properties = recorded(instance.system_metadata)
        table.put_instance(host, instance.uuid, tracked(instance, host, properties))


def delete(table: HostTable, host: str, uuid: str) -> None:
    """Forget the instance if it is on *host*; it may have moved on since the message."""
    if table.host_of_instance.get(uuid) == host:
        table.drop_instance(uuid)


def agree(table: HostTable, host: str, uuids: Iterable[str]) -> bool:
    """True when exactly *uuids* are on *host*, apart from reservations it has not heard of."""
    known, reported = table.instances.get(host, {}), set(uuids)
    return reported <= known.keys() and all(
        known[uuid].vm_state is None for uuid in known.keys() - reported
    )
