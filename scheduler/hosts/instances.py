"""Instances as the host table knows them, and the end of their reservations.

Reference pages scheduling, section 7.7, and rpc, section 2.3.  A reservation is over by the
instance's row and its host's report (docs/decisions/0007); the row must have been read before the
report, or in one snapshot.
"""

import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler import errors, objects
from scheduler.db.fleet_rows import IMAGE_KEY_PREFIX
from scheduler.hosts.columns import seconds

#: (property, text of its value) of one image.
Properties = frozenset[tuple[str, str]]

_NONE: Properties = frozenset()
BUILDING = "building"
#: Task states that a compute node sets once it has counted the instance and said so.
COUNTED_TASKS = frozenset(("networking", "block_device_mapping", "spawning"))
#: With these the instance may not have been counted yet, whatever its task.
NOT_YET = frozenset((None, "shelved", "shelved_offloaded"))
#: Most that the clocks of those who write rows may differ.
CLOCK_TOLERANCE_SECONDS = 2.0


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
    copied = {name: getattr(instance, name) for name in TrackedInstance._fields[2:8]}
    updated_at = seconds(instance.updated_at or instance.created_at)
    return TrackedInstance(
        instance.uuid, host, **copied, updated_at=updated_at, image_properties=properties
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


class End(enum.Enum):
    """Reason why a reservation is over."""

    REPORTED = "reported"
    REVERTED = "reverted"
    DELETED = "deleted"
    FAILED = "failed"
    ELSEWHERE = "elsewhere"
    EXPIRED = "expired"


class Terms(NamedTuple):
    """The conditions of one reservation; times in seconds since the epoch."""

    host: str
    node: str | None
    source_host: str | None
    flavor_id: int | None
    created_at: float
    expires_at: float


def terms_of(row: Any) -> Terms:
    """Those of the claim of *row*."""
    created_at, expires_at = seconds(row.created_at), seconds(row.expires_at)
    return Terms(row.host, row.node, row.source_host, row.flavor_id, created_at, expires_at)


def end_of(terms: Terms, instance: Any, reported_at: float, now: float) -> End | None:
    """Reason why a reservation on these terms is over; None while it is not.

    *instance* is the row of its instance (None if there is none yet), *reported_at* when the
    report that counts was written.
    """
    end = None if instance is None else _end_by_row(terms, instance, reported_at)
    if end is None and now > terms.expires_at:
        return End.EXPIRED
    return end


def _end_by_row(terms: Terms, instance: Any, reported_at: float) -> End | None:
    if instance.deleted:
        return End.DELETED
    touched_at = seconds(instance.updated_at or instance.created_at)
    if instance.vm_state == "error" and (instance.host is None or _is_news(touched_at, terms)):
        return End.FAILED  # one that is on no host has nothing to come back to
    if _is_back(terms, instance) and _is_news(touched_at, terms):
        return End.REVERTED
    if instance.host == terms.host and instance.node in (None, terms.node):
        return End.REPORTED if _is_counted(terms, instance, touched_at, reported_at) else None
    is_source = instance.host in (None, terms.source_host)
    return None if is_source or instance.host == terms.host else End.ELSEWHERE


def _is_back(terms: Terms, instance: Any) -> bool:
    """True for a move that is reverted, or failed: nobody is at it, and nothing has changed."""
    is_at_home = terms.source_host is not None and instance.host == terms.source_host
    has_flavor = terms.source_host == terms.host and instance.instance_type_id == terms.flavor_id
    return is_at_home and instance.task_state is None and not has_flavor


def _is_news(touched_at: float, terms: Terms) -> bool:
    return touched_at >= terms.created_at - CLOCK_TOLERANCE_SECONDS


def _is_counted(terms: Terms, instance: Any, touched_at: float, reported_at: float) -> bool:
    """True when the report counts the instance, which says that it is on the host.

    A build is counted before its later states are written.  A move is counted at some time, so
    that only a report from clearly after it is trusted; one on its host shows by its flavor.
    """
    if terms.source_host is None:
        if instance.vm_state == BUILDING:
            return instance.task_state in COUNTED_TASKS
        return instance.vm_state not in NOT_YET
    if terms.source_host == terms.host and instance.instance_type_id != terms.flavor_id:
        return False
    return reported_at > touched_at + CLOCK_TOLERANCE_SECONDS
