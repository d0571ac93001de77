"""Image properties: the known ones and their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from scheduler.objects import image_legacy
from scheduler.objects.base import WireObject
from scheduler.objects.enums import (
    ARCHITECTURE,
    CPU_POLICIES,
    CPU_THREAD_POLICIES,
    DEVICE_TYPES,
    DISK_BUSES,
    ENCRYPTION_FORMATS,
    HYPERVISOR_TYPE,
    OS_TYPE,
    PCI_NUMA_POLICIES,
    SCSI_MODEL,
    VM_MODE,
    carried,
    used,
)
from scheduler.objects.fields import (
    FLEXIBLE_BOOL,
    INT,
    PREDICATE,
    STR,
    UUID,
    BadValue,
    DictOf,
    Field,
    Kind,
    ListOf,
    SetOf,
)
from scheduler.objects.registry import register

_BUS = used(*DISK_BUSES)
_DEVICES = ListOf(DictOf(STR, nullable=True))

_KINDS: dict[str, Kind] = {
    "hw_architecture": ARCHITECTURE,
    "hw_emulation_architecture": ARCHITECTURE,
    "hw_auto_disk_config": STR,
    "hw_boot_menu": FLEXIBLE_BOOL,
    "hw_cdrom_bus": _BUS,
    "hw_cpu_cores": INT,
    "hw_cpu_sockets": INT,
    "hw_cpu_max_cores": INT,
    "hw_cpu_max_sockets": INT,
    "hw_cpu_max_threads": INT,
    "hw_cpu_policy": used(*CPU_POLICIES),
    "hw_cpu_thread_policy": used(*CPU_THREAD_POLICIES),
    "hw_cpu_realtime_mask": STR,
    "hw_cpu_threads": INT,
    "hw_device_id": INT,
    "hw_disk_bus": _BUS,
    "hw_disk_type": STR,
    "hw_floppy_bus": carried(*DISK_BUSES),
    "hw_firmware_type": used("uefi", "bios"),
    "hw_firmware_stateless": FLEXIBLE_BOOL,
    "hw_input_bus": carried("usb", "virtio"),
    "hw_ipxe_boot": FLEXIBLE_BOOL,
    "hw_locked_memory": FLEXIBLE_BOOL,
    "hw_machine_type": STR,
    "hw_mem_encryption": FLEXIBLE_BOOL,
    "hw_mem_encryption_model": used("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx"),
    "hw_mem_page_size": STR,
    "hw_numa_nodes": INT,
    "hw_numa_cpus": ListOf(SetOf(INT)),
    "hw_numa_mem": ListOf(INT),
    "hw_pci_numa_affinity_policy": used(*PCI_NUMA_POLICIES),
    "hw_pointer_model": carried("usbtablet"),
    "hw_pmu": FLEXIBLE_BOOL,
    "hw_qemu_guest_agent": FLEXIBLE_BOOL,
    "hw_rescue_bus": carried(*DISK_BUSES),
    "hw_rescue_device": carried(*DEVICE_TYPES),
    "hw_rng_model": carried("virtio"),
    "hw_time_hpet": FLEXIBLE_BOOL,
    "hw_serial_port_count": INT,
    "hw_scsi_model": SCSI_MODEL,
    "hw_video_model": used(
        "cirrus", "qxl", "vga", "vmvga", "xen", "virtio", "gop", "none", "bochs"
    ),
    "hw_video_ram": INT,
    "hw_vif_model": used(
        *[
            "virtio",
            "ne2k_pci",
            "pcnet",
            "rtl8139",
            "e1000",
            "e1000e",
            "netfront",
            "spapr-vlan",
            "lan9118",
            "sriov",
        ],
        *["vmxnet", "vmxnet3", "igb"],
    ),
    "hw_viommu_model": used("intel", "smmuv3", "virtio", "auto"),
    "hw_vm_mode": VM_MODE,
    "hw_watchdog_action": carried("none", "pause", "poweroff", "reset", "disabled"),
    "hw_vif_multiqueue_enabled": FLEXIBLE_BOOL,
    "hw_tpm_model": used("tpm-tis", "tpm-crb"),
    "hw_tpm_version": used("1.2", "2.0"),
    "hw_ephemeral_encryption": FLEXIBLE_BOOL,
    "hw_ephemeral_encryption_format": used(*ENCRYPTION_FORMATS),
    "hw_ephemeral_encryption_secret_uuid": UUID,
    "hw_virtio_packed_ring": FLEXIBLE_BOOL,
    "hw_maxphysaddr_mode": used("passthrough", "emulate"),
    "hw_maxphysaddr_bits": INT,
    "hw_sound_model": carried(
        *["sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio"]
    ),
    "hw_usb_model": carried("none", "nec-xhci", "qemu-xhci"),
    "hw_redirected_usb_ports": INT,
    "img_bittorrent": FLEXIBLE_BOOL,
    "img_bdm_v2": FLEXIBLE_BOOL,
    "img_block_device_mapping": _DEVICES,
    "img_cache_in_nova": FLEXIBLE_BOOL,
    "img_compression_level": INT,
    "img_hv_requested_version": PREDICATE,
    "img_hv_type": HYPERVISOR_TYPE,
    "img_config_drive": carried("optional", "mandatory"),
    "img_linked_clone": FLEXIBLE_BOOL,
    "img_mappings": _DEVICES,
    "img_owner_id": STR,
    "img_root_device_name": STR,
    "img_use_agent": FLEXIBLE_BOOL,
    "img_version": INT,
    "img_signature": STR,
    "img_signature_hash_method": carried("SHA-224", "SHA-256", "SHA-384", "SHA-512"),
    "img_signature_certificate_uuid": UUID,
    "img_signature_key_type": carried(
        *[
            "DSA",
            "ECC_SECP384R1",
            "ECC_SECP521R1",
            "ECC_SECT409K1",
            "ECC_SECT409R1",
            "ECC_SECT571K1",
        ],
        *["ECC_SECT571R1", "RSA-PSS"],
    ),
    "img_hide_hypervisor_id": FLEXIBLE_BOOL,
    "os_admin_user": STR,
    "os_command_line": STR,
    "os_distro": STR,
    "os_require_quiesce": FLEXIBLE_BOOL,
    "os_secure_boot": carried("required", "disabled", "optional"),
    "os_skip_agent_inject_files_at_boot": FLEXIBLE_BOOL,
    "os_skip_agent_inject_ssh": FLEXIBLE_BOOL,
    "os_type": OS_TYPE,
    "traits_required": ListOf(STR),
}
"""Property to type; the enumerations that no scheduler code reads are only carried."""


@register
class ImageMetaProps(WireObject):
    """The properties of an image; one that is not given is unset and reads as None."""

    VERSION = "1.44"
    FIELDS = {name: Field(kind) for name, kind in _KINDS.items()}

    @classmethod
    def read_dict(cls, properties: Mapping[str, Any]) -> Self:
        """As :meth:`from_dict`, raising BadValue with a path relative to the properties."""
        if not isinstance(properties, Mapping):
            raise BadValue("a mapping is needed")
        values = image_legacy.canonical(properties, cls.FIELDS.keys())
        props = cls()
        for name, value in values.items():
            props.__dict__[name] = cls.FIELDS[name].accept(name, value)
        return props

    @classmethod
    def from_dict(cls, properties: Mapping[str, Any]) -> Self:
        """Read image properties as Glance has them, by old and new names (section 3.10).

        Unknown properties are dropped; a bad value raises InvalidRequest naming the property.
        """
        try:
            return cls.read_dict(properties)
        except BadValue as exc:
            raise cls.complaint(exc) from exc

    def to_dict(self) -> dict[str, Any]:
        """The set properties as plain values, sets as sorted lists."""
        return {
            name: self.FIELDS[name].kind.encode(value, None)
            for name, value in self.set_fields().items()
        }
