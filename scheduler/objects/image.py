"""The image of a request, its properties, and their older spellings (objects page, section 3)."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Self
from uuid import UUID

from scheduler.objects import enums
from scheduler.objects.base import WireObject
from scheduler.objects.fields import (
    CONVERSION_ERRORS,
    FLEXIBLE_BOOL,
    PREDICATE,
    BadValue,
    Field,
    fields,
    located,
    mapping,
)
from scheduler.objects.numa import parse_cpu_spec

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
"""Property names of older releases and those of today."""

# Images spell these in another way, so the plain name is not read.
_SPELT_OTHERWISE = frozenset(("hw_numa_mem", "hw_numa_cpus", "traits_required"))
_EMPTY_FOR_NULL: dict[str, Any] = {
    **dict.fromkeys(("name", "checksum", "owner", "container_format", "disk_format"), ""),
    **dict.fromkeys(("size", "virtual_size"), 0),
}


class ImageMetaProps(WireObject):
    """The properties of an image; one that is not given is unset and reads as None.

    Enumerations of which the scheduler knows one value, or none, are texts here.
    """

    VERSION = "1.44"
    FIELDS = {
        **fields(
            str,
            "hw_auto_disk_config hw_cpu_realtime_mask hw_disk_type hw_machine_type hw_mem_page_size"
            " img_owner_id img_root_device_name img_signature os_admin_user os_command_line"
            " os_distro hw_floppy_bus hw_rescue_bus hw_input_bus hw_pointer_model hw_rescue_device"
            " hw_rng_model hw_watchdog_action hw_sound_model hw_usb_model img_config_drive"
            " img_signature_hash_method img_signature_key_type os_secure_boot",
        ),
        **fields(
            int,
            "hw_cpu_cores hw_cpu_sockets hw_cpu_max_cores hw_cpu_max_sockets hw_cpu_max_threads"
            " hw_cpu_threads hw_device_id hw_numa_nodes hw_serial_port_count hw_video_ram"
            " hw_maxphysaddr_bits hw_redirected_usb_ports img_compression_level img_version",
        ),
        **fields(
            FLEXIBLE_BOOL,
            "hw_boot_menu hw_firmware_stateless hw_ipxe_boot hw_locked_memory hw_mem_encryption"
            " hw_pmu hw_qemu_guest_agent hw_time_hpet hw_vif_multiqueue_enabled"
            " hw_ephemeral_encryption hw_virtio_packed_ring img_bittorrent img_bdm_v2"
            " img_cache_in_nova img_linked_clone img_use_agent img_hide_hypervisor_id"
            " os_require_quiesce os_skip_agent_inject_files_at_boot os_skip_agent_inject_ssh",
        ),
        **fields(UUID, "hw_ephemeral_encryption_secret_uuid img_signature_certificate_uuid"),
        **fields(enums.ARCHITECTURE, "hw_architecture hw_emulation_architecture"),
        **fields(enums.DISK_BUS, "hw_cdrom_bus hw_disk_bus"),
        **fields(list[dict[str, str | None]], "img_block_device_mapping img_mappings"),
        "hw_cpu_policy": Field(enums.CPU_POLICY),
        "hw_cpu_thread_policy": Field(enums.CPU_THREAD_POLICY),
        "hw_firmware_type": Field(enums.used("uefi bios")),
        "hw_mem_encryption_model": Field(enums.used("amd-sev amd-sev-es amd-sev-snp intel-tdx")),
        "hw_numa_cpus": Field(list[set[int]]),
        "hw_numa_mem": Field(list[int]),
        "hw_pci_numa_affinity_policy": Field(enums.PCI_NUMA_POLICY),
        "hw_scsi_model": Field(enums.SCSI_MODEL),
        "hw_video_model": Field(enums.used("cirrus qxl vga vmvga xen virtio gop none bochs")),
        "hw_vif_model": Field(
            enums.used(
                "virtio ne2k_pci pcnet rtl8139 e1000 e1000e netfront spapr-vlan lan9118 sriov"
                " vmxnet vmxnet3 igb"
            )
        ),
        "hw_viommu_model": Field(enums.used("intel smmuv3 virtio auto")),
        "hw_vm_mode": Field(enums.VM_MODE),
        "hw_tpm_model": Field(enums.used("tpm-tis tpm-crb")),
        "hw_tpm_version": Field(enums.used("1.2 2.0")),
        "hw_ephemeral_encryption_format": Field(enums.used("plain luks luksv2")),
        "hw_maxphysaddr_mode": Field(enums.used("passthrough emulate")),
        "img_hv_requested_version": Field(PREDICATE),
        "img_hv_type": Field(enums.HYPERVISOR_TYPE),
        "os_type": Field(enums.OS_TYPE),
        "traits_required": Field(list[str]),
    }

    @classmethod
    def read_dict(cls, value: Any) -> Self:
        """Read image properties as Glance has them, by old and new names (section 3.10).

        Unknown properties are dropped.  Raises BadValue that names the property.
        """
        return cls.read_fields(_canonical(mapping(value)))

    def to_dict(self) -> dict[str, Any]:
        """The set properties as plain values, sets as sorted lists."""
        values = self.set_fields().items()
        return {name: self.FIELDS[name].kind.encode(value, None) for name, value in values}


def _canonical(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Today's names for *properties*; of two spellings of one name the newer wins."""
    known = ImageMetaProps.FIELDS.keys() - _SPELT_OTHERWISE
    values = {LEGACY_NAMES[k]: v for k, v in properties.items() if k in LEGACY_NAMES}
    adapter = properties.get("vmware_adaptertype")
    if adapter == "ide":
        values["hw_disk_bus"] = "ide"
    elif adapter:
        values.update(hw_disk_bus="scsi", hw_scsi_model=adapter)
    values.update((k, v) for k, v in properties.items() if k in known)
    values.update(_numbered(properties, "hw_numa_mem", int))
    values.update(_numbered(properties, "hw_numa_cpus", lambda text: parse_cpu_spec(str(text))))
    traits = [
        key.removeprefix(TRAIT_PREFIX)
        for key, value in properties.items()
        if key.startswith(TRAIT_PREFIX) and value == "required"
    ]
    if traits:
        values["traits_required"] = traits
    return values


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


class ImageMeta(WireObject):
    """An image as Glance describes it; ``properties`` reads as empty when unset."""

    VERSION = "1.8"
    FIELDS = {
        "id": Field(UUID),
        **fields(str, "name status visibility checksum owner container_format disk_format"),
        "direct_url": Field(str),
        "protected": Field(FLEXIBLE_BOOL),
        **fields(int, "size virtual_size min_ram min_disk"),
        **fields(datetime.datetime, "created_at updated_at", nullable=True),
        "tags": Field(list[str]),
        "properties": Field(ImageMetaProps, unset=ImageMetaProps),
    }

    @classmethod
    def read_dict(cls, value: Mapping[str, Any] | None) -> Self:
        """Read the dict form of an image; null and ``{}`` give one with empty properties.

        Unknown keys are ignored.  Raises BadValue that names the field.
        """
        values = {
            k: _EMPTY_FOR_NULL.get(k) if v is None else v for k, v in dict(value or {}).items()
        }
        properties = values.pop("properties", None)
        meta = cls.read_fields(values)
        if not isinstance(properties, ImageMetaProps):
            try:
                properties = ImageMetaProps.read_dict(properties or {})
            except BadValue as exc:
                raise located("properties", exc) from exc
        meta.properties = properties
        return meta
