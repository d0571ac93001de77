"""Hosts: compute nodes, PCI pools, metrics, services, aggregates, cells (objects, 5 and 6)."""

import datetime
from typing import Any, Self
from uuid import UUID

from scheduler import errors
from scheduler.objects import enums, registry
from scheduler.objects.base import PERSISTENT, ListObject, WireObject, from_primitive
from scheduler.objects.fields import IP, EnumOf, Field, described, fields, mapping
from scheduler.objects.registry import read_json


class CellMapping(WireObject):
    """A cell; its URLs hold credentials and are masked wherever the object is shown."""

    VERSION = "1.1"
    FIELDS = {
        "id": Field(int, read_only=True),
        "uuid": Field(UUID),
        "name": Field(str, nullable=True),
        **fields(str, "transport_url database_connection", sensitive=True),
        "disabled": Field(bool, default=False, since=(1, 1)),
        **fields(datetime.datetime, "created_at updated_at", nullable=True),
    }


class HVSpec(WireObject):
    """A kind of guest that a host can run; unknown values of a host are kept, not refused."""

    VERSION = "1.2"
    FIELDS = {
        "arch": Field(EnumOf(enums.ARCHITECTURES, enums.canonical_architecture, strict=False)),
        "hv_type": Field(
            EnumOf(enums.HYPERVISOR_TYPES, enums.canonical_hypervisor_type, strict=False)
        ),
        "vm_mode": Field(EnumOf(enums.VM_MODES, enums.canonical_vm_mode, strict=False)),
    }


class PciDevicePool(WireObject):
    """Devices of a host that are alike."""

    VERSION = "1.1"
    FIELDS = {
        **fields(str, "product_id vendor_id"),
        "numa_node": Field(int, nullable=True),
        "tags": Field(dict[str, str | None], unset=dict),
        "count": Field(int),
    }

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read the flat form, in which every key that is no field is a tag; raises BadValue."""
        named = mapping(mapping(value).get("tags") or {}, "tags")
        tags = {k: v for k, v in value.items() if k not in cls.FIELDS}
        return cls.read_fields({"numa_node": None, **value, "tags": {**named, **tags}})

    def to_dict(self) -> dict[str, Any]:
        values = self.set_fields()
        return {**values.pop("tags", {}), **values}


class PciDevicePoolList(ListObject, of=PciDevicePool, version="1.1"):
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


class ComputeNode(WireObject):
    """One hypervisor: ``host`` is its service, ``hypervisor_hostname`` its own name."""

    VERSION = "1.19"
    FIELDS = {
        "id": Field(int, read_only=True),
        "uuid": Field(UUID, read_only=True),
        **fields(str, "host hypervisor_hostname cpu_info metrics numa_topology", nullable=True),
        **fields(int, "vcpus memory_mb local_gb vcpus_used memory_mb_used local_gb_used"),
        "hypervisor_type": Field(str),
        "hypervisor_version": Field(int),
        **fields(int, "service_id free_ram_mb free_disk_gb disk_available_least", nullable=True),
        **fields(int, "current_workload running_vms", nullable=True),
        "stats": Field(dict[str, str | None], nullable=True),
        "host_ip": Field(IP, nullable=True),
        "supported_hv_specs": Field(list[HVSpec], unset=list),
        "pci_device_pools": Field(PciDevicePoolList, nullable=True),
        **fields(float, "cpu_allocation_ratio ram_allocation_ratio disk_allocation_ratio"),
        "mapped": Field(int, since=(1, 18)),
        **PERSISTENT,
    }


class ComputeNodeList(ListObject, of=ComputeNode, version="1.17"):
    """Compute nodes."""


class Service(WireObject):
    """One process on one host, as its row says."""

    VERSION = "1.22"
    FIELDS = {
        "id": Field(int, read_only=True),
        "uuid": Field(UUID, since=(1, 21)),
        **fields(str, "host binary topic", nullable=True),
        "report_count": Field(int),
        "disabled": Field(bool),
        **fields(str, "disabled_reason availability_zone", nullable=True),
        "compute_node": Field(ComputeNode),
        "last_seen_up": Field(datetime.datetime, nullable=True),
        "forced_down": Field(bool),
        "version": Field(int),
        **PERSISTENT,
    }


class Aggregate(WireObject):
    """A named set of hosts with metadata; ``hosts`` are service hosts."""

    VERSION = "1.3"
    COMPUTED = ("availability_zone",)
    FIELDS = {
        "id": Field(int),
        "uuid": Field(UUID),
        "name": Field(str),
        "hosts": Field(list[str], nullable=True, unset=list),
        "metadata": Field(dict[str, str], nullable=True, unset=dict),
        **PERSISTENT,
    }

    @property
    def availability_zone(self) -> str | None:
        return (self.metadata or {}).get("availability_zone")


class AggregateList(ListObject, of=Aggregate, version="1.3"):
    """Aggregates."""


class MonitorMetric(WireObject):
    """One measured value; percentages are 0 to 100 here and 0 to 1 in the database's text."""

    VERSION = "1.1"
    FIELDS = {
        "name": Field(str),
        "value": Field(int),
        "numa_membw_values": Field(dict[str, int], nullable=True),
        "timestamp": Field(datetime.datetime),
        "source": Field(str),
    }

    @classmethod
    def read_dict(cls, value: dict[str, Any]) -> Self:
        """Read one entry of the text; a percentage is cut to an int after scaling, as in Nova."""
        values = {name: value[name] for name in cls.FIELDS if value.get(name) is not None}
        scaled = values.get("name") in enums.PERCENT_METRICS
        if scaled and isinstance(values.get("value"), (int, float)):
            values["value"] *= 100
        return cls.read_fields(values)


class MonitorMetricList(ListObject, of=MonitorMetric, version="1.1"):
    """All metrics of a host (reference page database, section 5.4)."""

    @classmethod
    def from_text(cls, text: str | None) -> Self:
        """Read ``compute_nodes.metrics``; null and the empty text give an empty list.

        Raises InvalidRequest when the text is no JSON list of metrics.
        """
        try:
            metrics = read_json(text) if text else []
        except ValueError as exc:
            raise errors.InvalidRequest(field=cls.__name__, reason=f"not JSON: {exc}") from exc
        if not isinstance(metrics, list) or not all(isinstance(m, dict) for m in metrics):
            raise errors.InvalidRequest(field=cls.__name__, reason=f"found {described(metrics)}")
        return cls(objects=[MonitorMetric.from_dict(metric) for metric in metrics])
