"""Features of guests that only some hosts have, as Placement is asked for them."""

import urllib.parse

import pytest

from scheduler import objects
from scheduler.claims.placement.candidates import CandidateQuery, Fleet
from tests.builders import a_conf, a_request

SIZES = "DISK_GB:1,MEMORY_MB:512,VCPU:1"
DISABLED = "!COMPUTE_STATUS_DISABLED"
TPM = {"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"}
FIRMWARE = {"hw_firmware_type": "uefi", "hw_firmware_stateless": True}
ENCRYPTED = {"hw:mem_encryption": "true", "hw:mem_encryption_model": "amd-sev-es"}
DISKS = {"hw:ephemeral_encryption": "yes", "hw:ephemeral_encryption_format": "luks"}
MANAGED = objects.InstancePCIRequests(
    requests=[objects.InstancePCIRequest(count=1, spec=[{"remote_managed": "True"}])]
)
SECRETS = "COMPUTE_SECURITY_TPM_SECRET_SECURITY"
CASES = {  # what is asked for -> parts of the query (nothing behind "=": no such part)
    "persistent memory": (
        {"hw:pmem": "SMALL, b--2,SMALL"},
        f"resources=CUSTOM_PMEM_NAMESPACE_B_2:1,CUSTOM_PMEM_NAMESPACE_SMALL:2,{SIZES}",
    ),
    "encrypted memory": (
        ENCRYPTED,
        "resources=DISK_GB:1,MEMORY_MB:512,MEM_ENCRYPTION_CONTEXT:1,VCPU:1 "
        "required=HW_CPU_X86_AMD_SEV_ES",
    ),
    "the image has it": ({"image": {"hw_mem_encryption": True}}, "required=HW_CPU_X86_AMD_SEV"),
    "no encrypted memory": ({"hw:mem_encryption": "false"}, f"resources={SIZES} required="),
    "secure boot": (
        {"os:secure_boot": "required"},
        "required=COMPUTE_SECURITY_UEFI_SECURE_BOOT",
    ),
    "secure boot if possible": ({"os:secure_boot": "optional"}, "required="),
    "addresses": (
        {"hw:maxphysaddr_mode": "emulate"},
        "required=COMPUTE_ADDRESS_SPACE_EMULATED",
    ),
    "a socket's devices": (
        {"hw:pci_numa_affinity_policy": "socket"},
        "required=COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
    ),
    "firmware": ({"image": FIRMWARE}, "required=COMPUTE_SECURITY_STATELESS_FIRMWARE"),
    "firmware without a choice": ({"image": {"hw_firmware_stateless": True}}, "required="),
    "a TPM": (TPM, "required=COMPUTE_SECURITY_TPM_2_0,COMPUTE_SECURITY_TPM_CRB"),
    "a TPM in an image": (
        {"image": {"hw_tpm_version": "1.2"}},
        "required=COMPUTE_SECURITY_TPM_1_2,COMPUTE_SECURITY_TPM_TIS",
    ),
    "accelerators": (
        {"accel:device_profile": "gpu"},
        f"root_required=COMPUTE_ACCELERATORS,{DISABLED}",
    ),
    "packed rings": (
        {"hw:virtio_packed_ring": "1"},
        f"root_required=COMPUTE_NET_VIRTIO_PACKED,{DISABLED}",
    ),
    "encrypted disks": (
        DISKS,
        f"root_required=COMPUTE_EPHEMERAL_ENCRYPTION,COMPUTE_EPHEMERAL_ENCRYPTION_LUKS,{DISABLED}",
    ),
    "sound": ({"hw:sound_model": "virtio"}, f"root_required=COMPUTE_SOUND_MODEL_VIRTIO,{DISABLED}"),
    "sound that every host has": ({"hw:sound_model": "ich6"}, f"root_required={DISABLED}"),
    "remote-managed ports": (
        {"pci_requests": MANAGED},
        f"root_required=COMPUTE_REMOTE_MANAGED_PORTS,{DISABLED}",
    ),
}


def asked(given, lowest_version=0):
    """The parts of the query; *given* are extra specs, or fields of the request."""
    is_specs = all(":" in key for key in given)
    spec = a_request(**({"flavor": {"extra_specs": given}} if is_specs else given))
    (wish,) = CandidateQuery(a_conf(), None).wishes(spec, Fleet((), lowest_version, None))
    return dict(urllib.parse.parse_qsl(wish.for_fleet(), strict_parsing=True))


@pytest.mark.parametrize("name", CASES)
def test_hosts_need_the_features_of_the_guest(name):
    given, text = CASES[name]
    found = asked(given)
    for part in text.split():
        key, _equals, value = part.partition("=")
        assert found.get(key) == (value or None)


@pytest.mark.parametrize(
    ("lowest_version", "extra_specs", "kept_by"),
    [(72, TPM, "_USER"), (72, {**TPM, "hw:tpm_secret_security": "host"}, "_HOST"), (71, TPM, "")],
)
def test_hosts_that_report_it_are_asked_how_they_keep_the_secrets_of_a_tpm(
    lowest_version, extra_specs, kept_by
):
    found = asked(extra_specs, lowest_version)
    wanted = f"{SECRETS}{kept_by},{DISABLED}" if kept_by else DISABLED
    assert found["root_required"] == wanted
