"""CPU, thread, emulator and realtime policies of flavor and image (sections 4.2 and 10.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from scheduler.errors import InvalidRequest
from scheduler.numa import refusals
from scheduler.numa.guest import PINNED_POLICIES
from scheduler.numa.semantics import NumaSemantics
from scheduler.numa.wishes import Wishes, image_refused, masked, refused
from scheduler.objects.enums import CPU_THREAD_POLICIES, EMULATOR_THREADS_POLICIES

_HYPERTHREADING = "HW_CPU_HYPERTHREADING"
_POLICY_OF_TRAIT: Mapping[str, str] = MappingProxyType(
    {"forbidden": "isolate", "required": "require"}
)


@dataclass(frozen=True, slots=True)
class Policies:
    """How the guest's CPUs are given out; *dedicated* are those with a host CPU of their own."""

    cpu: str | None
    thread: str | None
    emulator: str | None
    dedicated: frozenset[int] = frozenset()

    @property
    def is_pinned(self) -> bool:
        """Whether any CPU is dedicated."""
        return self.cpu in PINNED_POLICIES


def policies(wishes: Wishes, semantics: NumaSemantics) -> Policies:
    """The policies that flavor and image agree on; raises the refusals of their pages."""
    found = Policies(
        cpu=_cpu_policy(wishes, semantics),
        thread=_thread_policy(wishes),
        emulator=_emulator_policy(wishes),
    )
    found = _with_resources(found, wishes)
    if found.thread and not found.is_pinned:
        reason = f"{found.thread!r} needs CPUs that are pinned"
        raise refused(refusals.CPUThreadPolicyConfigurationInvalid, "cpu_thread_policy", reason)
    if found.emulator == "isolate" and not found.is_pinned:
        reason = "'isolate' needs CPUs that are pinned"
        raise refused(
            refusals.BadRequirementEmulatorThreadsPolicy, "emulator_threads_policy", reason
        )
    realtime = _realtime_cpus(found, wishes, semantics)
    return replace(found, dedicated=frozenset(_dedicated_cpus(found, wishes, realtime)))


def _cpu_policy(wishes: Wishes, semantics: NumaSemantics) -> str | None:
    flavor, image = wishes.flavor("cpu_policy"), wishes.image("cpu_policy")
    if flavor is not None and flavor not in semantics.cpu_policies:
        if semantics.refuses_unknown_cpu_policy:
            reason = f"{flavor!r} is none of {', '.join(semantics.cpu_policies)}"
            raise refused(refusals.InvalidCPUAllocationPolicy, "cpu_policy", reason)
        flavor = None
    if image not in semantics.cpu_policies:
        image = None
    forbidden = {"shared": PINNED_POLICIES, "mixed": ("dedicated",)}
    if image in forbidden.get(flavor or "", ()):
        reason = f"{image!r}, but the flavor says {flavor!r}"
        raise image_refused(refusals.ImageCPUPinningForbidden, "cpu_policy", reason)
    return flavor or image


def _thread_policy(wishes: Wishes) -> str | None:
    flavor, image = wishes.flavor("cpu_thread_policy"), wishes.image("cpu_thread_policy")
    if flavor is not None and flavor not in CPU_THREAD_POLICIES:
        reason = f"{flavor!r} is none of {', '.join(CPU_THREAD_POLICIES)}"
        raise refused(refusals.InvalidCPUThreadAllocationPolicy, "cpu_thread_policy", reason)
    if flavor not in (None, "prefer") and image not in (None, flavor):
        reason = f"{image!r}, but the flavor says {flavor!r}"
        raise image_refused(refusals.ImageCPUThreadPolicyForbidden, "cpu_thread_policy", reason)
    return flavor or image


def _emulator_policy(wishes: Wishes) -> str | None:
    policy = wishes.flavor("emulator_threads_policy")
    if policy is not None and policy not in EMULATOR_THREADS_POLICIES:
        reason = f"{policy!r} is none of {', '.join(EMULATOR_THREADS_POLICIES)}"
        raise refused(refusals.InvalidEmulatorThreadsPolicy, "emulator_threads_policy", reason)
    return policy


def _with_resources(found: Policies, wishes: Wishes) -> Policies:
    """Policies that ``resources:VCPU``, ``resources:PCPU`` and a trait stand for."""
    shared, pinned = _amount(wishes, "VCPU"), _amount(wishes, "PCPU")
    if shared or pinned:
        found = replace(found, cpu=_policy_of_resources(found, wishes, shared, pinned))
    traits = {value for value in wishes.totals("trait", _HYPERTHREADING)} & _POLICY_OF_TRAIT.keys()
    if not traits or not found.is_pinned:
        return found
    if found.thread is not None or len(traits) > 1:
        reason = "the trait and hw:cpu_thread_policy exclude each other"
        raise refused(InvalidRequest, f"trait:{_HYPERTHREADING}", reason)
    return replace(found, thread=_POLICY_OF_TRAIT[traits.pop()])


def _policy_of_resources(found: Policies, wishes: Wishes, shared: int, pinned: int) -> str:
    key = "resources:PCPU" if pinned else "resources:VCPU"
    if found.cpu is not None:
        raise refused(InvalidRequest, key, "not together with a CPU policy")
    if shared and pinned:
        raise refused(InvalidRequest, key, "not together with resources:VCPU")
    if not pinned:
        return "shared"
    needed = wishes.vcpus + (found.emulator == "isolate")
    if pinned != needed:
        raise refused(InvalidRequest, key, f"{pinned}, but {needed} CPUs are to be pinned")
    return "dedicated"


def _amount(wishes: Wishes, name: str) -> int:
    texts = wishes.totals("resources", name)
    try:
        return sum(map(int, texts))
    except ValueError as exc:
        raise refused(InvalidRequest, f"resources:{name}", str(exc)) from exc


def _realtime_cpus(found: Policies, wishes: Wishes, semantics: NumaSemantics) -> set[int] | None:
    if not wishes.flavor_is_true("cpu_realtime"):
        return None
    if not found.is_pinned:
        reason = "realtime needs CPUs that are pinned"
        raise refused(refusals.RealtimeConfigurationInvalid, "cpu_realtime", reason)
    key, error = "cpu_realtime_mask", refusals.RealtimeMaskNotFoundOrInvalid
    text = wishes.image(key) or wishes.flavor(key)
    if text is None and found.emulator is None:
        raise refused(error, key, "realtime needs a mask")
    if not semantics.checks_realtime_mask:
        return None
    everything = set(range(wishes.vcpus))
    cpus = everything if text is None else masked(text, key, everything, error)
    if not cpus <= everything or (cpus == everything and found.emulator is None):
        raise refused(error, key, f"{text!r} does not leave out any of {wishes.vcpus} CPUs")
    return cpus if text is not None else None


def _dedicated_cpus(found: Policies, wishes: Wishes, realtime: set[int] | None) -> set[int]:
    everything, key = set(range(wishes.vcpus)), "cpu_dedicated_mask"
    text = wishes.flavor(key)
    if found.cpu != "mixed":
        if text is not None:
            reason = f"only with the policy 'mixed', not {found.cpu!r}"
            raise refused(refusals.RequiredMixedInstancePolicy, key, reason)
        return everything if found.is_pinned else set()
    if (text is None) == (realtime is None):
        reason = "the policy 'mixed' needs either this mask or a realtime mask"
        raise refused(refusals.RequiredMixedOrRealtimeCPUMask, key, reason)
    error = refusals.InvalidMixedInstanceDedicatedMask
    cpus = masked(text, key, everything, error) if text is not None else realtime or set()
    if not cpus or not cpus < everything:
        reason = f"{sorted(cpus)} must be some of {wishes.vcpus} CPUs, and not all"
        raise refused(error, key, reason)
    return cpus
