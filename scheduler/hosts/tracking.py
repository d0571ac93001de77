"""Instances per host as the compute services broadcast them (reference page rpc, section 2.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scheduler.hosts import image_properties, rows
from scheduler.hosts.reservations import TrackedInstance
from scheduler.hosts.table import HostTable


class InstanceTracker:
    """Applies instance updates to the table.  The caller holds the decision lock."""

    def __init__(self, table: HostTable) -> None:
        self.table = table

    def update(self, host: str, instances: Iterable[Any]) -> None:
        """Note *instances* (objects of which only ``uuid`` must be set) as running on *host*."""
        for instance in instances:
            known = self.table.instances.get(host, {}).get(instance.uuid)
            self.table.put_instance(host, instance.uuid, _tracked(host, instance, known))

    def delete(self, host: str, uuid: str) -> None:
        """Forget the instance if it is on *host*; it may have moved on since the message."""
        if self.table.host_of_instance.get(uuid) == host:
            self.table.drop_instance(uuid)

    def agrees(self, host: str, uuids: Iterable[str]) -> bool:
        """Whether exactly *uuids* are known on *host*, apart from picks it has not heard of."""
        known = self.table.instances.get(host, {})
        reported = set(uuids)
        return reported <= known.keys() and all(
            known[uuid].vm_state is None for uuid in known.keys() - reported
        )


def _tracked(host: str, instance: Any, known: TrackedInstance | None) -> TrackedInstance:
    if known is not None and not instance.is_set("system_metadata"):
        properties = known.image_properties
    else:
        properties = image_properties.recorded(instance.system_metadata)
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
