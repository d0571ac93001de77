"""Image properties as Glance and older releases spell them (objects page, 3.10)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from scheduler.objects.cpu_spec import parse_cpu_spec
from scheduler.objects.fields import CONVERSION_ERRORS, located

MAX_NUMA_NODES = 128
TRAIT_PREFIX = "trait:"

LEGACY_NAMES = {
    "architecture": "hw_architecture",
    "owner_id": "img_owner_id",
    "vmware_disktype": "hw_disk_type",
    "vmware_image_version": "img_version",
    "vmware_ostype": "os_distro",
    "auto_disk_config": "hw_auto_disk_config",
    "ipxe_boot": "hw_ipxe_boot",
    "xenapi_device_id": "hw_device_id",
    "xenapi_image_compression_level": "img_compression_level",
    "vmware_linked_clone": "img_linked_clone",
    "xenapi_skip_agent_inject_ssh": "os_skip_agent_inject_ssh",
    "cache_in_nova": "img_cache_in_nova",
    "vm_mode": "hw_vm_mode",
    "bittorrent": "img_bittorrent",
    "mappings": "img_mappings",
    "block_device_mapping": "img_block_device_mapping",
    "bdm_v2": "img_bdm_v2",
    "root_device_name": "img_root_device_name",
    "hypervisor_version_requires": "img_hv_requested_version",
    "hypervisor_type": "img_hv_type",
    "xenapi_use_agent": "img_use_agent",
    "xenapi_skip_agent_inject_files_at_boot": "os_skip_agent_inject_files_at_boot",
}

# Each of these has its own spelling in an image, so the plain name is not read.
_SPELT_OTHERWISE = frozenset(("hw_numa_mem", "hw_numa_cpus", "traits_required"))


def canonical(properties: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Today's names for *properties*; of two spellings of one name the newer wins.

    Raises BadValue for a malformed NUMA list; other values are the caller's to convert.
    """
    values = {LEGACY_NAMES[k]: v for k, v in properties.items() if k in LEGACY_NAMES}
    values.update(_vmware_adapter(properties.get("vmware_adaptertype")))
    values.update((k, v) for k, v in properties.items() if k in known and k not in _SPELT_OTHERWISE)
    values.update(_numbered(properties, "hw_numa_mem", int))
    values.update(_numbered(properties, "hw_numa_cpus", lambda text: parse_cpu_spec(str(text))))
    traits = [
        key[len(TRAIT_PREFIX) :]
        for key, value in properties.items()
        if key.startswith(TRAIT_PREFIX) and value == "required"
    ]
    if traits:
        values["traits_required"] = traits
    return values


def _vmware_adapter(adapter: Any) -> dict[str, Any]:
    if not adapter:
        return {}
    if adapter == "ide":
        return {"hw_disk_bus": "ide"}
    return {"hw_disk_bus": "scsi", "hw_scsi_model": adapter}


def _numbered(
    properties: Mapping[str, Any], name: str, convert: Callable[[Any], Any]
) -> dict[str, list[Any]]:
    values = []
    for number in range(MAX_NUMA_NODES):
        key = f"{name}.{number}"
        if key not in properties:
            break
        try:
            values.append(convert(properties[key]))
        except CONVERSION_ERRORS as exc:
            raise located(key, exc) from exc
    return {name: values} if values else {}
