"""Features of a guest that only some hosts have, as Placement is asked for them.

Flavor and image may ask for one; Nova's API refuses where they differ.  Compute hosts report most
as traits.  Some belong to the host itself, the others to any provider in its tree.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from oslo_utils import strutils

#: Traits of any provider, by property and value.
_TRAITS: Final = {
    "os:secure_boot": {"required": "COMPUTE_SECURITY_UEFI_SECURE_BOOT"},
    "hw:maxphysaddr_mode": {
        "passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
        "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED",
    },
    "hw:pci_numa_affinity_policy": {"socket": "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"},
    "hw:tpm_version": {"1.2": "COMPUTE_SECURITY_TPM_1_2", "2.0": "COMPUTE_SECURITY_TPM_2_0"},
}
_TPM_MODELS: Final = {"tpm-tis": "COMPUTE_SECURITY_TPM_TIS", "tpm-crb": "COMPUTE_SECURITY_TPM_CRB"}
_ENCRYPTIONS: Final = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}
_TPM_SECRETS: Final = ("user", "host", "deployment")
#: The version of nova-compute's service record from which on hosts report how they keep these.
FIRST_WITH_TPM_SECRETS: Final = 72


class Features:
    def __init__(self, spec: Any) -> None:
        self._specs = spec.flavor.extra_specs or {}
        self._properties = getattr(spec.image, "properties", None)
        self._devices = getattr(spec.pci_requests, "requests", None) or ()

    def resources(self) -> Counter[str]:
        """Amounts by resource class: slots of encrypted memory, and persistent memory."""
        labels = [label.strip() for label in self._specs.get("hw:pmem", "").split(",")]
        names = [f"PMEM_NAMESPACE_{label}" for label in labels if label]
        amounts = Counter(f"CUSTOM_{re.sub('[^A-Za-z0-9]+', '_', each).upper()}" for each in names)
        if self._wants("hw:mem_encryption"):
            amounts["MEM_ENCRYPTION_CONTEXT"] = 1
        return amounts

    def traits(self) -> set[str]:
        found = {traits.get(self._value(name)) for name, traits in _TRAITS.items()}
        if self._value("hw:tpm_version"):
            found.add(_TPM_MODELS.get(self._value("hw:tpm_model") or "tpm-tis"))
        if self._wants("hw:mem_encryption"):
            found.add(_ENCRYPTIONS.get(self._value("hw:mem_encryption_model") or "amd-sev"))
        is_uefi = self._of_image("hw:firmware_type") == "uefi"
        if is_uefi and self._of_image("hw:firmware_stateless"):
            found.add("COMPUTE_SECURITY_STATELESS_FIRMWARE")
        return set(filter(None, found))

    def root_traits(self, lowest_version: int) -> Iterator[str]:
        """Traits of the host itself; *lowest_version* is that of all nova-computes."""
        if self._specs.get("accel:device_profile"):
            yield "COMPUTE_ACCELERATORS"
        if self._wants("hw:virtio_packed_ring"):
            yield "COMPUTE_NET_VIRTIO_PACKED"
        if self._wants("hw:ephemeral_encryption"):
            yield "COMPUTE_EPHEMERAL_ENCRYPTION"
            if form := self._value("hw:ephemeral_encryption_format"):
                yield f"COMPUTE_EPHEMERAL_ENCRYPTION_{form.upper()}"
        if self._value("hw:sound_model") == "virtio":
            yield "COMPUTE_SOUND_MODEL_VIRTIO"
        specs = (each for request in self._devices for each in request.spec)
        if any(strutils.bool_from_string(each.get("remote_managed")) for each in specs):
            yield "COMPUTE_REMOTE_MANAGED_PORTS"
        if self._value("hw:tpm_version") and lowest_version >= FIRST_WITH_TPM_SECRETS:
            kept_by = self._specs.get("hw:tpm_secret_security") or "user"
            if kept_by in _TPM_SECRETS:
                yield f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{kept_by.upper()}"

    def _value(self, name: str) -> Any:
        """The value of flavor or image; None if neither has one."""
        return self._specs.get(name) or self._of_image(name)

    def _of_image(self, name: str) -> Any:
        return getattr(self._properties, name.replace(":", "_"), None)

    def _wants(self, name: str) -> bool:
        return bool(strutils.bool_from_string(self._value(name)))
