"""The guest topology that a flavor and an image ask for (sections 4 and 10).

Where several things are wrong, today's order of evaluation decides which is reported, whatever
the semantics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from scheduler import objects
from scheduler.errors import InvalidRequest
from scheduler.numa import specs
from scheduler.numa.policies import Policies, policies
from scheduler.numa.semantics import CURRENT, NumaSemantics
from scheduler.numa.specs import HardwareSpecs, cpu_set, image_refused, refused
from scheduler.objects.texts import MAX_CPU

_CELLS = re.compile("[1-9][0-9]{0,8}")

Shape = list[tuple[AbstractSet[int], int]]


def constraints(
    flavor: objects.Flavor,
    image: objects.ImageMeta | None,
    semantics: NumaSemantics = CURRENT,
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
    key, error = "numa_nodes", specs.InvalidNUMANodesNumber
    text, number = asked.flavor(key), asked.image(key)
    if text is not None and number is not None:
        raise image_refused(specs.ImageNUMATopologyForbidden, key, "the flavor sets it")
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
    except ValueError as exc:
        raise refused(specs.MemoryPageSizeInvalid, key, str(exc)) from exc
    if not image_text:
        return wish
    if text not in ("any", "large"):
        reason = f"{image_text!r}, but the flavor says {text!r}"
        raise image_refused(specs.MemoryPageSizeForbidden, key, reason)
    try:
        return semantics.page_size_kb(image_text)
    except ValueError as exc:
        raise image_refused(specs.MemoryPageSizeInvalid, key, str(exc)) from exc


def _shape(asked: HardwareSpecs, nodes: int) -> Shape:
    cpus = _one_of(
        asked,
        "numa_cpus",
        [cpu_set(text, f"numa_cpus.{i}") for i, text in enumerate(asked.numbered("numa_cpus"))],
    )
    memory = _one_of(
        asked,
        "numa_mem",
        [_megabytes(text, f"numa_mem.{i}") for i, text in enumerate(asked.numbered("numa_mem"))],
    )
    if not cpus and not memory:
        return _even(asked, nodes)
    if len(cpus) != nodes or len(memory) != nodes:
        reason = f"CPUs of {len(cpus)} and memory of {len(memory)} of {nodes} cells are given"
        raise refused(specs.ImageNUMATopologyIncomplete, "numa_nodes", reason)
    _check_cpus(cpus, asked.vcpus)
    if sum(memory) != asked.memory_mb:
        reason = f"{sum(memory)} MiB in all cells, but the flavor has {asked.memory_mb}"
        raise refused(specs.ImageNUMATopologyMemoryOutOfRange, "numa_mem.0", reason)
    return list(zip(cpus, memory, strict=True))


def _one_of(asked: HardwareSpecs, key: str, of_flavor: list) -> list:
    of_image = asked.image(key)
    if of_flavor and of_image:
        raise image_refused(specs.ImageNUMATopologyForbidden, key, "the flavor sets it")
    return of_flavor or list(of_image or ())


def _megabytes(text: str, key: str) -> int:
    try:
        return int(text)
    except ValueError as exc:
        raise refused(InvalidRequest, key, f"{text!r} is not a number of MiB") from exc


def _even(asked: HardwareSpecs, nodes: int) -> Shape:
    if nodes > max(1, asked.vcpus) or asked.vcpus % nodes or asked.memory_mb % nodes:
        reason = f"{asked.vcpus} CPUs and {asked.memory_mb} MiB do not divide by {nodes}"
        raise refused(specs.ImageNUMATopologyAsymmetric, "numa_nodes", reason)
    cpus, memory_mb = asked.vcpus // nodes, asked.memory_mb // nodes
    return [(frozenset(range(k * cpus, (k + 1) * cpus)), memory_mb) for k in range(nodes)]


def _check_cpus(cells: Sequence[AbstractSet[int]], vcpus: int) -> None:
    seen: set[int] = set()
    for number, cpus in enumerate(cells):
        key = f"numa_cpus.{number}"
        for cpu in sorted(cpus):
            if cpu >= vcpus:
                reason = f"{cpu}, but the flavor has {vcpus} CPUs"
                raise refused(specs.ImageNUMATopologyCPUOutOfRange, key, reason)
            if cpu in seen:
                raise refused(specs.ImageNUMATopologyCPUDuplicates, key, f"{cpu} twice")
            seen.add(cpu)
    if len(seen) < vcpus:
        missing = sorted(set(range(vcpus)) - seen)
        raise refused(
            specs.ImageNUMATopologyCPUsUnassigned, "numa_cpus.0", f"{missing} are in no cell"
        )
