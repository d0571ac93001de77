"""CPU, thread, emulator and realtime policies of flavor and image (sections 4.2 and 10.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from scheduler.errors import InvalidRequest
from scheduler.numa import specs
from scheduler.numa.guest import PINNED_POLICIES
from scheduler.numa.semantics import NumaSemantics
from scheduler.numa.specs import HardwareSpecs, image_refused, masked, refused
from scheduler.objects.enums import CPU_THREAD_POLICIES, EMULATOR_THREADS_POLICIES

_HYPERTHREADING = "HW_CPU_HYPERTHREADING"
_POLICY_OF_TRAIT: Mapping[str, str] = MappingProxyType(
    {"forbidden": "isolate", "required": "require"}
)


@dataclass(frozen=True, slots=True)
class Policies:
    """The CPU policies of a guest; *dedicated* CPUs have host CPUs of their own."""

    cpu: str | None
    thread: str | None
    emulator: str | None
    dedicated: frozenset[int] = frozenset()

    @property
    def is_pinned(self) -> bool:
        """True when some CPU is dedicated."""
        return self.cpu in PINNED_POLICIES


def policies(asked: HardwareSpecs, semantics: NumaSemantics) -> Policies:
    """The policies that flavor and image agree on; raises the refusals of their pages."""
    found = Policies(
        cpu=_cpu_policy(asked, semantics),
        thread=_thread_policy(asked),
        emulator=_emulator_policy(asked),
    )
    found = _with_resources(found, asked)
    if found.thread and not found.is_pinned:
        reason = f"{found.thread!r} needs CPUs that are pinned"
        raise refused(specs.CPUThreadPolicyConfigurationInvalid, "cpu_thread_policy", reason)
    if found.emulator == "isolate" and not found.is_pinned:
        reason = "'isolate' needs CPUs that are pinned"
        raise refused(specs.BadRequirementEmulatorThreadsPolicy, "emulator_threads_policy", reason)
    realtime = _realtime_cpus(found, asked, semantics)
    return replace(found, dedicated=frozenset(_dedicated_cpus(found, asked, realtime)))


def _cpu_policy(asked: HardwareSpecs, semantics: NumaSemantics) -> str | None:
    flavor, image = asked.flavor("cpu_policy"), asked.image("cpu_policy")
    if flavor is not None and flavor not in semantics.cpu_policies:
        if semantics.refuses_unknown_cpu_policy:
            reason = f"{flavor!r} is none of {', '.join(semantics.cpu_policies)}"
            raise refused(specs.InvalidCPUAllocationPolicy, "cpu_policy", reason)
        flavor = None
    if image not in semantics.cpu_policies:
        image = None
    forbidden = {"shared": PINNED_POLICIES, "mixed": ("dedicated",)}
    if image in forbidden.get(flavor or "", ()):
        reason = f"{image!r}, but the flavor says {flavor!r}"
        raise image_refused(specs.ImageCPUPinningForbidden, "cpu_policy", reason)
    return flavor or image


def _thread_policy(asked: HardwareSpecs) -> str | None:
    flavor, image = asked.flavor("cpu_thread_policy"), asked.image("cpu_thread_policy")
    if flavor is not None and flavor not in CPU_THREAD_POLICIES:
        reason = f"{flavor!r} is none of {', '.join(CPU_THREAD_POLICIES)}"
        raise refused(specs.InvalidCPUThreadAllocationPolicy, "cpu_thread_policy", reason)
    if flavor not in (None, "prefer") and image not in (None, flavor):
        reason = f"{image!r}, but the flavor says {flavor!r}"
        raise image_refused(specs.ImageCPUThreadPolicyForbidden, "cpu_thread_policy", reason)
    return flavor or image


def _emulator_policy(asked: HardwareSpecs) -> str | None:
    policy = asked.flavor("emulator_threads_policy")
    if policy is not None and policy not in EMULATOR_THREADS_POLICIES:
        reason = f"{policy!r} is none of {', '.join(EMULATOR_THREADS_POLICIES)}"
        raise refused(specs.InvalidEmulatorThreadsPolicy, "emulator_threads_policy", reason)
    return policy


def _with_resources(found: Policies, asked: HardwareSpecs) -> Policies:
    """Policies that ``resources:VCPU``, ``resources:PCPU`` and a trait stand for."""
    shared, pinned = _amount(asked, "VCPU"), _amount(asked, "PCPU")
    if shared or pinned:
        found = replace(found, cpu=_policy_of_resources(found, asked, shared, pinned))
    traits = {value for value in asked.totals("trait", _HYPERTHREADING)} & _POLICY_OF_TRAIT.keys()
    if not traits or not found.is_pinned:
        return found
    if found.thread is not None or len(traits) > 1:
        reason = "the trait and hw:cpu_thread_policy exclude each other"
        raise refused(InvalidRequest, f"trait:{_HYPERTHREADING}", reason)
    return replace(found, thread=_POLICY_OF_TRAIT[traits.pop()])


def _policy_of_resources(found: Policies, asked: HardwareSpecs, shared: int, pinned: int) -> str:
    key = "resources:PCPU" if pinned else "resources:VCPU"
    if found.cpu is not None:
        raise refused(InvalidRequest, key, "not together with a CPU policy")
    if shared and pinned:
        raise refused(InvalidRequest, key, "not together with resources:VCPU")
    if not pinned:
        return "shared"
    needed = asked.vcpus + (found.emulator == "isolate")
    if pinned != needed:
        raise refused(InvalidRequest, key, f"{pinned}, but {needed} CPUs are to be pinned")
    return "dedicated"


def _amount(asked: HardwareSpecs, name: str) -> int:
    texts = asked.totals("resources", name)
    try:
        return sum(map(int, texts))
    except ValueError as exc:
        raise refused(InvalidRequest, f"resources:{name}", str(exc)) from exc


def _realtime_cpus(
    found: Policies, asked: HardwareSpecs, semantics: NumaSemantics
) -> set[int] | None:
    if not asked.flavor_is_true("cpu_realtime"):
        return None
    if not found.is_pinned:
        reason = "realtime needs CPUs that are pinned"
        raise refused(specs.RealtimeConfigurationInvalid, "cpu_realtime", reason)
    key, error = "cpu_realtime_mask", specs.RealtimeMaskNotFoundOrInvalid
    text = asked.image(key) or asked.flavor(key)
    if text is None and found.emulator is None:
        raise refused(error, key, "realtime needs a mask")
    if not semantics.checks_realtime_mask:
        return None
    everything = set(range(asked.vcpus))
    cpus = everything if text is None else masked(text, key, everything, error)
    if not cpus <= everything or (cpus == everything and found.emulator is None):
        raise refused(error, key, f"{text!r} does not leave out any of {asked.vcpus} CPUs")
    return cpus if text is not None else None


def _dedicated_cpus(found: Policies, asked: HardwareSpecs, realtime: set[int] | None) -> set[int]:
    everything, key = set(range(asked.vcpus)), "cpu_dedicated_mask"
    text = asked.flavor(key)
    if found.cpu != "mixed":
        if text is not None:
            reason = f"only with the policy 'mixed', not {found.cpu!r}"
            raise refused(specs.RequiredMixedInstancePolicy, key, reason)
        return everything if found.is_pinned else set()
    if (text is None) == (realtime is None):
        reason = "the policy 'mixed' needs either this mask or a realtime mask"
        raise refused(specs.RequiredMixedOrRealtimeCPUMask, key, reason)
    error = specs.InvalidMixedInstanceDedicatedMask
    cpus = masked(text, key, everything, error) if text is not None else realtime or set()
    if not cpus or not cpus < everything:
        reason = f"{sorted(cpus)} must be some of {asked.vcpus} CPUs, and not all"
        raise refused(error, key, reason)
    return cpus
