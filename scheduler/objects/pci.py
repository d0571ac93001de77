"""PCI requests of instances and PCI pools of hosts (reference page objects, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from scheduler.objects import registry
from scheduler.objects.base import WireObject, described, from_primitive
from scheduler.objects.enums import PCI_NUMA_POLICY
from scheduler.objects.fields import BOOL, INT, STR, UUID, BadValue, DictOf, Field, ListOf, located
from scheduler.objects.nested import ListObject, ObjectOf
from scheduler.objects.texts import read_json


class InstancePCIRequest(WireObject):
    """A number of devices that match one of several specs; no ``numa_policy`` means legacy."""

    VERSION = "1.4"
    FIELDS = {
        "count": Field(INT),
        "spec": Field(ListOf(DictOf(STR, nullable=True)), unset=list),
        "alias_name": Field(STR, nullable=True),
        "is_new": Field(BOOL, default=False),
        "request_id": Field(UUID, nullable=True),
        "requester_id": Field(STR, nullable=True, since=(1, 3)),
        "numa_policy": Field(PCI_NUMA_POLICY, nullable=True, since=(1, 2)),
    }


class InstancePCIRequests(WireObject):
    """All PCI requests of one instance."""

    VERSION = "1.1"
    FIELDS = {
        "instance_uuid": Field(UUID),
        "requests": Field(ListOf(ObjectOf(InstancePCIRequest)), unset=list),
    }

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read a plain dict, or the list of request dicts that database rows and hints hold.

        Raises BadValue that names the request and the field at fault.
        """
        if not isinstance(value, Mapping):
            value = {"requests": value}
        elif registry.NAME_KEY in value:
            return cls.read(dict(value))
        result = cls()
        uuid = value.get("instance_uuid")
        if uuid is not None:
            result.instance_uuid = uuid
        items = value.get("requests") or []
        if not isinstance(items, list):
            raise BadValue(f"a list is needed, not {described(items)}", "requests")
        result.__dict__["requests"] = [_request(i, item) for i, item in enumerate(items)]
        return result


def _request(number: int, item: Any) -> InstancePCIRequest:
    if isinstance(item, InstancePCIRequest):
        return item
    try:
        if not isinstance(item, Mapping):
            raise BadValue(f"a mapping is needed, not {described(item)}")
        if registry.NAME_KEY in item:
            return InstancePCIRequest.read(dict(item))
        return InstancePCIRequest.read_dict(item)
    except BadValue as exc:
        raise located(f"requests[{number}]", exc) from exc


class PciDevicePool(WireObject):
    """Devices of a host that are alike."""

    VERSION = "1.1"
    FIELDS = {
        "product_id": Field(STR),
        "vendor_id": Field(STR),
        "numa_node": Field(INT, nullable=True),
        "tags": Field(DictOf(STR, nullable=True), unset=dict),
        "count": Field(INT),
    }

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read the flat form, in which every key that is no field is a tag; raises BadValue."""
        if not isinstance(value, Mapping) or not isinstance(value.get("tags") or {}, Mapping):
            raise BadValue(f"a mapping is needed, not {described(value)}")
        tags = {k: v for k, v in value.items() if k not in cls.FIELDS}
        return cls.read_fields(
            {"numa_node": None, **value, "tags": {**(value.get("tags") or {}), **tags}}
        )

    def to_dict(self) -> dict[str, Any]:
        """The flat form: tags beside the other keys."""
        values = self.set_fields()
        return {**values.pop("tags", {}), **values}


class PciDevicePoolList(ListObject, of=PciDevicePool, version="1.1"):
    """The PCI pools of one host."""

    @classmethod
    def from_text(cls, text: str | None) -> Self | None:
        """Read ``compute_nodes.pci_stats``: an envelope, a list of flat pools, or one flat pool.

        Null gives None; a text that is no JSON gives an empty list.  Raises InvalidRequest for
        pools with bad values.
        """
        if text is None:
            return None
        try:
            value = read_json(text)
        except ValueError:
            return cls()
        if isinstance(value, dict) and registry.NAMESPACE_KEY in value:
            return from_primitive(value)
        pools = value if isinstance(value, list) else [value]
        return cls(objects=[PciDevicePool.from_dict(pool) for pool in pools if pool])
