"""Value sets of enumerated fields and the spellings mapped onto them.

Follows reference page objects, sections 3.9 (canonical spellings) and 3 (values).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler.objects.fields import EnumOf


def _lower_case(aliases: Mapping[str, str]) -> Callable[[str], str]:
    def canonical(text: str) -> str:
        lowered = text.lower()
        return aliases.get(lowered, lowered)

    return canonical


ARCHITECTURES = [
    "alpha",
    "armv6",
    "armv7l",
    "armv7b",
    "aarch64",
    "cris",
    "i686",
    "ia64",
    "lm32",
    "m68k",
    "microblaze",
    "microblazeel",
    "mips",
    "mipsel",
    "mips64",
    "mips64el",
    "openrisc",
    "parisc",
    "parisc64",
    "ppc",
    "ppcle",
    "ppc64",
    "ppc64le",
    "ppcemb",
    "s390",
    "s390x",
    "sh4",
    "sh4eb",
    "sparc",
    "sparc64",
    "unicore32",
    "x86_64",
    "xtensa",
    "xtensaeb",
]
HYPERVISOR_TYPES = [
    "baremetal",
    "bhyve",
    "docker",
    "fake",
    "hyperv",
    "ironic",
    "kqemu",
    "kvm",
    "lxc",
    "lxd",
    "openvz",
    "parallels",
    "phyp",
    "qemu",
    "test",
    "uml",
    "vbox",
    "vz",
    "vmware",
    "xen",
    "zvm",
    "prsm",
]
VM_MODES = ("hvm", "xen", "uml", "exe")
SCSI_MODELS = [
    "buslogic",
    "ibmvscsi",
    "lsilogic",
    "lsisas1068",
    "lsisas1078",
    "virtio-scsi",
    "vmpvscsi",
]
DISK_BUSES = ["fdc", "ide", "sata", "scsi", "usb", "virtio", "xen", "lxc", "uml"]
DEVICE_TYPES = ("cdrom", "disk", "floppy", "fs", "lun")
CPU_POLICIES = ("dedicated", "shared", "mixed")
CPU_THREAD_POLICIES = ("prefer", "isolate", "require")
PCI_NUMA_POLICIES = ("required", "legacy", "preferred", "socket")
EMULATOR_THREADS_POLICIES = ("share", "isolate")
ENCRYPTION_FORMATS = ("plain", "luks", "luksv2")
PERCENT_METRICS = (
    "cpu.user.percent",
    "cpu.kernel.percent",
    "cpu.idle.percent",
    "cpu.iowait.percent",
    "cpu.percent",
)
METRICS = (
    "cpu.frequency",
    "cpu.user.time",
    "cpu.kernel.time",
    "cpu.idle.time",
    "cpu.iowait.time",
    *PERCENT_METRICS,
    "numa.membw.max",
    "numa.membw.current",
)

canonical_architecture = _lower_case(
    dict.fromkeys(("i386", "i486", "i586", "x86_32", "x86_32p"), "i686") | {"amd64": "x86_64"}
)
canonical_hypervisor_type = _lower_case({"xapi": "xen"})
canonical_vm_mode = _lower_case({"pv": "xen", "hv": "hvm", "baremetal": "hvm"})
canonical_scsi_model = _lower_case({"lsilogicsas": "lsisas1068", "paravirtual": "vmpvscsi"})
canonical_os_type = _lower_case({})

ARCHITECTURE = EnumOf(ARCHITECTURES, canonical_architecture)
HYPERVISOR_TYPE = EnumOf(HYPERVISOR_TYPES, canonical_hypervisor_type)
VM_MODE = EnumOf(VM_MODES, canonical_vm_mode)
SCSI_MODEL = EnumOf(SCSI_MODELS, canonical_scsi_model, strict=False)
OS_TYPE = EnumOf(("linux", "windows"), canonical_os_type, strict=False)
CPU_POLICY = EnumOf(CPU_POLICIES)
CPU_THREAD_POLICY = EnumOf(CPU_THREAD_POLICIES)
EMULATOR_THREADS_POLICY = EnumOf(EMULATOR_THREADS_POLICIES)
PCI_NUMA_POLICY = EnumOf(PCI_NUMA_POLICIES)


def used(*values: str) -> EnumOf:
    """Values that scheduling looks at: others are refused."""
    return EnumOf(values)


def carried(*values: str) -> EnumOf:
    """Values that scheduling only passes on: others are kept as they are."""
    return EnumOf(values, strict=False)
