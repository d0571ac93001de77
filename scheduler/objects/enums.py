"""Value sets of enumerated fields and the spellings mapped onto them (page objects, 3 and 3.9)."""

from collections.abc import Callable, Mapping

from scheduler.objects.fields import EnumOf


def _lower_case(aliases: Mapping[str, str]) -> Callable[[str], str]:
    def canonical(text: str) -> str:
        lowered = text.lower()
        return aliases.get(lowered, lowered)

    return canonical


_ARCHITECTURES = (
    "alpha armv6 armv7l armv7b aarch64 cris i686 ia64 lm32 m68k microblaze microblazeel mips mipsel"
    " mips64 mips64el openrisc parisc parisc64 ppc ppcle ppc64 ppc64le ppcemb s390 s390x sh4 sh4eb"
    " sparc sparc64 unicore32 x86_64 xtensa xtensaeb"
)
_HYPERVISOR_TYPES = (
    "baremetal bhyve docker fake hyperv ironic kqemu kvm lxc lxd openvz parallels phyp qemu test"
    " uml vbox vz vmware xen zvm prsm"
)
ARCHITECTURES = _ARCHITECTURES.split()
HYPERVISOR_TYPES = _HYPERVISOR_TYPES.split()
VM_MODES = ("hvm", "xen", "uml", "exe")
CPU_POLICIES = ("dedicated", "shared", "mixed")
CPU_THREAD_POLICIES = ("prefer", "isolate", "require")
PCI_NUMA_POLICIES = ("required", "legacy", "preferred", "socket")
EMULATOR_THREADS_POLICIES = ("share", "isolate")
_PERCENTAGES = ("user.", "kernel.", "idle.", "iowait.", "")
PERCENT_METRICS = tuple(f"cpu.{part}percent" for part in _PERCENTAGES)

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
_SCSI_MODELS = "buslogic ibmvscsi lsilogic lsisas1068 lsisas1078 virtio-scsi vmpvscsi"
SCSI_MODEL = EnumOf(_SCSI_MODELS.split(), canonical_scsi_model, strict=False)
OS_TYPE = EnumOf(("linux", "windows"), canonical_os_type, strict=False)
CPU_POLICY = EnumOf(CPU_POLICIES)
CPU_THREAD_POLICY = EnumOf(CPU_THREAD_POLICIES)
EMULATOR_THREADS_POLICY = EnumOf(EMULATOR_THREADS_POLICIES)
PCI_NUMA_POLICY = EnumOf(PCI_NUMA_POLICIES)


def used(values: str) -> EnumOf:
    """The words of *values*, which scheduling reads: others are refused."""
    return EnumOf(values.split())


DISK_BUS = used("fdc ide sata scsi usb virtio xen lxc uml")
