"""The guest topology that a flavor and an image ask for (sections 4 and 10).

Where several things are wrong, today's order of evaluation decides which is reported, whatever
the semantics.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from oslo_utils import strutils

from scheduler import objects
from scheduler.errors import InvalidRequest, image_refused, refused
from scheduler.numa.semantics import CURRENT, NumaSemantics
from scheduler.numa.specs import HardwareSpecs, cpu_set, masked
from scheduler.numa.topology import PINNED_POLICIES
from scheduler.objects.enums import CPU_THREAD_POLICIES, EMULATOR_THREADS_POLICIES
from scheduler.objects.numa import MAX_CPU

_CELLS = re.compile("[1-9][0-9]{0,8}")

Shape = list[tuple[AbstractSet[int], int]]


@dataclass(frozen=True, slots=True)
class Policies:
    """The CPU policies of a guest; *dedicated* CPUs have host CPUs of their own."""

    cpu: str | None
    thread: str | None
    emulator: str | None
    dedicated: frozenset[int] = frozenset()

    @property
    def is_pinned(self) -> bool:
        return self.cpu in PINNED_POLICIES


def constraints(
    flavor: objects.Flavor, image: objects.ImageMeta | None, semantics: NumaSemantics = CURRENT
) -> objects.InstanceNUMATopology | None:
    """The cells that guests of *flavor* and *image* have; None when they ask for nothing.

    Raises a subclass of InvalidRequest (:mod:`scheduler.numa.specs`), or InvalidRequest
    itself, that names the extra spec or image property at fault.
    """
    if flavor.vcpus > MAX_CPU:
        raise InvalidRequest(field="flavor.vcpus", reason=f"{flavor.vcpus}; {MAX_CPU} at most")
    asked = HardwareSpecs.from_objects(flavor, image, semantics.unknown_extra_specs)
    found = policies(asked, semantics)
    nodes = _node_count(asked)
    pagesize = _page_wish(asked, semantics)
    if nodes is not None or pagesize is not None or asked.flavor("pmem"):
        shape = _shape(asked, nodes or 1)
    elif found.is_pinned:
        shape = [(frozenset(range(asked.vcpus)), asked.memory_mb)]
    else:
        return None
    topology = objects.InstanceNUMATopology(
        cells=[_cell(i, cpus, memory, pagesize, found) for i, (cpus, memory) in enumerate(shape)]
    )
    if found.is_pinned and found.emulator is not None:
        topology.emulator_threads_policy = found.emulator
    return topology


def _cell(
    number: int, cpus: AbstractSet[int], memory_mb: int, pagesize: int | None, found: Policies
) -> objects.InstanceNUMACell:
    return objects.InstanceNUMACell(
        id=number,
        cpuset=set(cpus - found.dedicated),
        pcpuset=set(cpus & found.dedicated),
        memory=memory_mb,
        pagesize=pagesize,
        cpu_policy=found.cpu if found.is_pinned else None,
        cpu_thread_policy=found.thread,
    )


def _node_count(asked: HardwareSpecs) -> int | None:
    key, error = "numa_nodes", "InvalidNUMANodesNumber"
    text, number = asked.flavor(key), asked.image(key)
    if text is not None and number is not None:
        raise image_refused("ImageNUMATopologyForbidden", key, "the flavor sets it")
    if text is not None:
        if not _CELLS.fullmatch(text):
            raise refused(error, key, f"{text!r:.50} is not a number of cells")
        return int(text)
    if number is not None and number < 1:
        raise image_refused(error, key, f"{number} is not a number of cells")
    return number


def _page_wish(asked: HardwareSpecs, semantics: NumaSemantics) -> int | None:
    key = "mem_page_size"
    text, image_text = asked.flavor(key), asked.image(key)
    wish = None
    try:
        if text is not None:
            wish = semantics.page_size_kb(text)
    except (OverflowError, ValueError) as exc:
        raise refused("MemoryPageSizeInvalid", key, str(exc)) from exc
    if not image_text:
        return wish
    if text not in ("any", "large"):
        reason = f"{image_text!r}, but the flavor says {text!r}"
        raise image_refused("MemoryPageSizeForbidden", key, reason)
    try:
        return semantics.page_size_kb(image_text)
    except (OverflowError, ValueError) as exc:
        raise image_refused("MemoryPageSizeInvalid", key, str(exc)) from exc


def _shape(asked: HardwareSpecs, nodes: int) -> Shape:
    cpus, memory = _per_cell(asked, "numa_cpus", cpu_set), _per_cell(asked, "numa_mem", _megabytes)
    if not cpus and not memory:
        return _even(asked, nodes)
    if len(cpus) != nodes or len(memory) != nodes:
        reason = f"CPUs of {len(cpus)} and memory of {len(memory)} of {nodes} cells are given"
        raise refused("ImageNUMATopologyIncomplete", "numa_nodes", reason)
    _check_cpus(cpus, asked.vcpus)
    if sum(memory) != asked.memory_mb:
        reason = f"{sum(memory)} MiB in all cells, but the flavor has {asked.memory_mb}"
        raise refused("ImageNUMATopologyMemoryOutOfRange", "numa_mem.0", reason)
    return list(zip(cpus, memory, strict=True))


def _per_cell(asked: HardwareSpecs, key: str, read: Callable[[str, str], Any]) -> list[Any]:
    of_flavor = [read(text, f"{key}.{i}") for i, text in enumerate(asked.numbered(key))]
    of_image = asked.image(key)
    if of_flavor and of_image:
        raise image_refused("ImageNUMATopologyForbidden", key, "the flavor sets it")
    return of_flavor or list(of_image or ())


def _megabytes(text: str, key: str) -> int:
    try:
        return int(text)
    except ValueError as exc:
        raise refused("InvalidRequest", key, f"{text!r} is not a number of MiB") from exc


def _even(asked: HardwareSpecs, nodes: int) -> Shape:
    if nodes > max(1, asked.vcpus) or asked.vcpus % nodes or asked.memory_mb % nodes:
        reason = f"{asked.vcpus} CPUs and {asked.memory_mb} MiB do not divide by {nodes}"
        raise refused("ImageNUMATopologyAsymmetric", "numa_nodes", reason)
    cpus, memory_mb = asked.vcpus // nodes, asked.memory_mb // nodes
    return [(frozenset(range(k * cpus, (k + 1) * cpus)), memory_mb) for k in range(nodes)]


def _check_cpus(cells: Sequence[AbstractSet[int]], vcpus: int) -> None:
    seen: set[int] = set()
    for number, cpus in enumerate(cells):
        key = f"numa_cpus.{number}"
        for cpu in sorted(cpus):
            if cpu >= vcpus:
                reason = f"{cpu}, but the flavor has {vcpus} CPUs"
                raise refused("ImageNUMATopologyCPUOutOfRange", key, reason)
            if cpu in seen:
                raise refused("ImageNUMATopologyCPUDuplicates", key, f"{cpu} twice")
            seen.add(cpu)
    if len(seen) < vcpus:
        missing = sorted(set(range(vcpus)) - seen)
        raise refused("ImageNUMATopologyCPUsUnassigned", "numa_cpus.0", f"{missing} are in no cell")


# --- policies (sections 4.2 and 10.2) --------------------------------------------------------

_HYPERTHREADING = "HW_CPU_HYPERTHREADING"
_POLICY_OF_TRAIT: Mapping[str, str] = MappingProxyType(
    {"forbidden": "isolate", "required": "require"}
)


def policies(asked: HardwareSpecs, semantics: NumaSemantics) -> Policies:
    """The policies that flavor and image agree on; raises the refusals of their pages."""
    found = Policies(
        cpu=_cpu_policy(asked, semantics),
        thread=_thread_policy(asked),
        emulator=_one_of_words(
            *(asked, "emulator_threads_policy", EMULATOR_THREADS_POLICIES),
            "InvalidEmulatorThreadsPolicy",
        ),
    )
    found = _with_resources(found, asked)
    if found.thread and not found.is_pinned:
        reason = f"{found.thread!r} needs CPUs that are pinned"
        raise refused("CPUThreadPolicyConfigurationInvalid", "cpu_thread_policy", reason)
    if found.emulator == "isolate" and not found.is_pinned:
        reason = "'isolate' needs CPUs that are pinned"
        raise refused("BadRequirementEmulatorThreadsPolicy", "emulator_threads_policy", reason)
    realtime = _realtime_cpus(found, asked, semantics)
    return replace(found, dedicated=frozenset(_dedicated_cpus(found, asked, realtime)))


def _cpu_policy(asked: HardwareSpecs, semantics: NumaSemantics) -> str | None:
    key, known = "cpu_policy", semantics.cpu_policies
    if semantics.refuses_unknown_cpu_policy:
        _one_of_words(asked, key, known, "InvalidCPUAllocationPolicy")
    flavor, image = (
        policy if policy in known else None for policy in (asked.flavor(key), asked.image(key))
    )
    forbidden = {"shared": PINNED_POLICIES, "mixed": ("dedicated",)}
    if image in forbidden.get(flavor or "", ()):
        reason = f"{image!r}, but the flavor says {flavor!r}"
        raise image_refused("ImageCPUPinningForbidden", key, reason)
    return flavor or image


def _thread_policy(asked: HardwareSpecs) -> str | None:
    key, error = "cpu_thread_policy", "InvalidCPUThreadAllocationPolicy"
    flavor, image = _one_of_words(asked, key, CPU_THREAD_POLICIES, error), asked.image(key)
    if flavor not in (None, "prefer") and image not in (None, flavor):
        reason = f"{image!r}, but the flavor says {flavor!r}"
        raise image_refused("ImageCPUThreadPolicyForbidden", key, reason)
    return flavor or image


def _one_of_words(asked: HardwareSpecs, key: str, words: Collection[str], error: str) -> str | None:
    """The flavor's ``hw:<key>``, which must be one of *words*."""
    found = asked.flavor(key)
    if found is not None and found not in words:
        raise refused(error, key, f"{found!r} is none of {', '.join(words)}")
    return found


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
        raise refused("InvalidRequest", f"trait:{_HYPERTHREADING}", reason)
    return replace(found, thread=_POLICY_OF_TRAIT[traits.pop()])


def _policy_of_resources(found: Policies, asked: HardwareSpecs, shared: int, pinned: int) -> str:
    key = "resources:PCPU" if pinned else "resources:VCPU"
    if found.cpu is not None:
        raise refused("InvalidRequest", key, "not together with a CPU policy")
    if shared and pinned:
        raise refused("InvalidRequest", key, "not together with resources:VCPU")
    if not pinned:
        return "shared"
    needed = asked.vcpus + (found.emulator == "isolate")
    if pinned != needed:
        raise refused("InvalidRequest", key, f"{pinned}, but {needed} CPUs are to be pinned")
    return "dedicated"


def _amount(asked: HardwareSpecs, name: str) -> int:
    texts = asked.totals("resources", name)
    try:
        return sum(map(int, texts))
    except ValueError as exc:
        raise refused("InvalidRequest", f"resources:{name}", str(exc)) from exc


def _realtime_cpus(
    found: Policies, asked: HardwareSpecs, semantics: NumaSemantics
) -> set[int] | None:
    if not strutils.bool_from_string(asked.flavor("cpu_realtime")):
        return None
    if not found.is_pinned:
        reason = "realtime needs CPUs that are pinned"
        raise refused("RealtimeConfigurationInvalid", "cpu_realtime", reason)
    key, error = "cpu_realtime_mask", "RealtimeMaskNotFoundOrInvalid"
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
            raise refused("RequiredMixedInstancePolicy", key, reason)
        return everything if found.is_pinned else set()
    if (text is None) == (realtime is None):
        reason = "the policy 'mixed' needs either this mask or a realtime mask"
        raise refused("RequiredMixedOrRealtimeCPUMask", key, reason)
    error = "InvalidMixedInstanceDedicatedMask"
    cpus = masked(text, key, everything, error) if text is not None else realtime or set()
    if not cpus or not cpus < everything:
        reason = f"{sorted(cpus)} must be some of {asked.vcpus} CPUs, and not all"
        raise refused(error, key, reason)
    return cpus
