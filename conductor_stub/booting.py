"""New servers as Nova's API makes them: the rows, and what the conductor is asked.

Reference pages conductor, sections 1 and 2, and database, sections 3.3 to 3.5 and 4.
"""

from __future__ import annotations

import re
import secrets
import uuid
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from conductor_stub import server_rows, wire_objects
from scheduler import numa, objects, pci, semantics
from scheduler.rpc.context import RequestContext

IMAGE_NAMESPACE = uuid.UUID("2f1d7f5e-5b0c-4f0e-9f5e-6d6c696d6167")
IMAGE_PREFIX = "image_"
BASE_IMAGE = "base_image_ref"
IMAGE = {"status": "active", "min_ram": 0, "min_disk": 0}
ROOT_DEVICE = "/dev/vda"
ROOT_DISK = {
    "source_type": "image",
    "destination_type": "local",
    "device_type": "disk",
    "boot_index": 0,
    "device_name": ROOT_DEVICE,
    "delete_on_termination": True,
    "no_device": False,
}
NO_POWER = 0


@dataclass(frozen=True)
class Placement:
    """The requested place of servers: a zone, one host or node of it, hosts to avoid."""

    zone: str | None = None
    host: str | None = None
    node: str | None = None
    ignored_hosts: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls, text: str | None, default_zone: str | None, ignored_hosts: tuple[str, ...]
    ) -> Placement:
        """Read ``ZONE[:HOST[:NODE]]``; an empty host or node asks for nothing."""
        zone, host, node, *_ = [*(text or "").split(":", 2), "", ""]
        return cls(zone or default_zone, host or None, node or None, ignored_hosts)


@dataclass(frozen=True)
class Wishes:
    """The NUMA cells and PCI devices that each server gets."""

    cells: objects.InstanceNUMATopology | None = None
    devices: tuple[objects.InstancePCIRequest, ...] = ()

    @classmethod
    def from_flavor(cls, flavor: objects.Flavor, image: dict[str, Any], conf: Any) -> Wishes:
        """Those of *flavor* and *image*, by the aliases of ``[pci]`` in *conf*.

        Raises InvalidRequest naming what is at fault (reference page numa_pci, 4 and 7.3).
        """
        meta = objects.ImageMeta.from_dict(image)
        devices = tuple(pci.requests_of_flavor(flavor, meta, conf.pci.alias).requests)
        return cls(numa.constraints(flavor, meta, semantics.from_conf(conf).numa), devices)

    def pci_requests(self, uuid: str) -> objects.InstancePCIRequests:
        """The devices as requests of the server *uuid*, its own."""
        several = [each.copy() for each in self.devices]
        return objects.InstancePCIRequests(instance_uuid=uuid, requests=several)


@dataclass(frozen=True)
class BootRequest:
    """*count* servers that are alike."""

    name: str | None
    count: int
    flavor: objects.Flavor
    image: dict[str, Any]
    user_id: str
    project_id: str
    placement: Placement = Placement()
    group: objects.InstanceGroup | None = None
    hints: dict[str, str | list[str]] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    wishes: Wishes = field(default_factory=Wishes)

    def filter_properties(self) -> dict[str, Any]:
        """The filter properties for the conductor."""
        hints = dict(self.hints)
        if self.group is not None:
            hints["group"] = self.group.uuid
        properties: dict[str, Any] = {"scheduler_hints": hints, "instance_type": self.flavor}
        placement = self.placement
        if placement.host:
            properties["force_hosts"] = [placement.host]
        if placement.node:
            properties["force_nodes"] = [placement.node]
        if placement.ignored_hosts:
            properties["ignore_hosts"] = list(placement.ignored_hosts)
        return properties


def image_of(name_or_uuid: str, properties: dict[str, str]) -> dict[str, Any]:
    """The image of that name or uuid, made up as there is no image service to ask."""
    try:
        image_id = str(uuid.UUID(name_or_uuid))
    except ValueError:
        image_id = str(uuid.uuid5(IMAGE_NAMESPACE, name_or_uuid))
    return {"id": image_id, "name": name_or_uuid, **IMAGE, "properties": dict(properties)}


def image_of_server(instance: objects.Instance) -> dict[str, Any]:
    """The image that a server was made of, as its system metadata tells (scheduling page, 9.1)."""
    texts = {
        key.removeprefix(IMAGE_PREFIX): value
        for key, value in instance.system_metadata.items()
        if key.startswith(IMAGE_PREFIX) and value is not None
    }
    image_id = texts.pop(BASE_IMAGE, instance.image_ref)
    return {"id": image_id, **IMAGE, "properties": texts}


def create_servers(conn: Connection, request: BootRequest) -> list[wire_objects.BuildRequest]:
    """Write everything about the servers that is known before they have a host, as Newton."""
    wanted = want_servers(conn, request)
    for each in wanted:
        server_rows.create_instance(conn, each.instance)
        server_rows.create_disks(conn, each.block_device_mappings)
    return wanted


def want_servers(conn: Connection, request: BootRequest) -> list[wire_objects.BuildRequest]:
    """Write only that the servers are wanted: since Ocata the conductor makes their rows."""
    reservation = f"r-{secrets.token_hex(4)}"
    wanted = []
    for index in range(request.count):
        instance = _instance(request, index, reservation)
        root = wire_objects.BlockDeviceMapping(
            **ROOT_DISK, instance_uuid=instance.uuid, image_id=request.image["id"]
        )
        disks = wire_objects.BlockDeviceMappingList(objects=[root])
        wanted.append(server_rows.create_build_request(conn, instance, disks))
    if request.group is not None:
        server_rows.join_group(conn, request.group.uuid, [each.instance_uuid for each in wanted])
    return wanted


def request_spec(
    context: RequestContext, request: BootRequest, wanted: wire_objects.BuildRequest
) -> objects.RequestSpec:
    """The request for the host of one of the servers, as the API of today makes it."""
    instance, properties = wanted.instance, request.filter_properties()
    spec = request_of_server(
        context, instance, request.image, request.flavor, request.wishes, properties
    )
    spec.availability_zone = instance.availability_zone
    spec.num_instances = request.count
    spec.is_bfv = False
    return spec


def request_of_server(
    context: RequestContext,
    instance: objects.Instance,
    image: dict[str, Any],
    flavor: objects.Flavor,
    wishes: Wishes,
    filter_properties: dict[str, Any],
) -> objects.RequestSpec:
    """A request for one server of the context's project and user, as the API makes it."""
    properties = {
        "uuid": instance.uuid,
        "numa_topology": wishes.cells,
        "pci_requests": wishes.pci_requests(instance.uuid),
        "project_id": context.project_id,
        "user_id": context.user_id,
        "availability_zone": None,
    }
    legacy = {"image": image, "instance_type": flavor, "instance_properties": properties}
    spec = objects.RequestSpec.from_primitives(legacy, filter_properties)
    spec.requested_resources = []
    spec.request_level_params = objects.RequestLevelParams()
    return spec


def _instance(request: BootRequest, index: int, reservation: str) -> objects.Instance:
    instance_uuid, flavor, image_id = str(uuid.uuid4()), request.flavor, request.image["id"]
    wishes, texts = request.wishes, {BASE_IMAGE: image_id, **request.image["properties"]}
    name = request.name or f"server-{instance_uuid[:8]}"
    if request.name is not None and request.count > 1:
        name = f"{name}-{index + 1}"
    return objects.Instance(
        uuid=instance_uuid,
        user_id=request.user_id,
        project_id=request.project_id,
        reservation_id=reservation,
        launch_index=index,
        display_name=name,
        display_description=name,
        hostname=re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-") or f"server-{index}",
        vm_state="building",
        task_state="scheduling",
        power_state=NO_POWER,
        image_ref=image_id,
        kernel_id="",
        ramdisk_id="",
        availability_zone=request.placement.zone,
        root_device_name=ROOT_DEVICE,
        config_drive="",
        instance_type_id=flavor.id,
        **{name: getattr(flavor, name) for name in server_rows.FLAVOR_SIZES},
        flavor=flavor,
        pci_requests=wishes.pci_requests(instance_uuid),
        numa_topology=None if wishes.cells is None else wishes.cells.copy(),
        metadata=dict(request.metadata),
        system_metadata={IMAGE_PREFIX + key: str(value) for key, value in texts.items()},
    )
