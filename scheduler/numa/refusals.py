"""Why flavor and image make no guest topology, by Nova's names (sections 4.4 and 10)."""

from __future__ import annotations

from scheduler.errors import InvalidRequest


class InvalidNUMANodesNumber(InvalidRequest):
    """The number of cells is no number above zero."""


class ImageNUMATopologyForbidden(InvalidRequest):
    """The image sets what the flavor sets already."""

    code = 403


class ImageNUMATopologyIncomplete(InvalidRequest):
    """CPUs and memory are not both given for every cell."""


class ImageNUMATopologyAsymmetric(InvalidRequest):
    """CPUs or memory do not divide evenly among the cells."""


class ImageNUMATopologyCPUOutOfRange(InvalidRequest):
    """A cell names a CPU that the flavor does not have."""


class ImageNUMATopologyCPUDuplicates(InvalidRequest):
    """Two cells name the same CPU."""


class ImageNUMATopologyCPUsUnassigned(InvalidRequest):
    """CPUs of the flavor are in no cell."""


class ImageNUMATopologyMemoryOutOfRange(InvalidRequest):
    """The memory of the cells is not that of the flavor."""


class MemoryPageSizeInvalid(InvalidRequest):
    """No page size can be read."""


class MemoryPageSizeForbidden(InvalidRequest):
    """The image asks for pages where the flavor does not let it."""


class InvalidCPUAllocationPolicy(InvalidRequest):
    """There is no such CPU policy."""


class InvalidCPUThreadAllocationPolicy(InvalidRequest):
    """There is no such CPU thread policy."""


class ImageCPUPinningForbidden(InvalidRequest):
    """The image wants pinned CPUs, the flavor does not let it."""

    code = 403


class ImageCPUThreadPolicyForbidden(InvalidRequest):
    """The image wants another CPU thread policy than the flavor."""

    code = 403


class CPUThreadPolicyConfigurationInvalid(InvalidRequest):
    """A CPU thread policy without pinned CPUs."""


class RealtimeConfigurationInvalid(InvalidRequest):
    """Realtime without pinned CPUs."""


class RealtimeMaskNotFoundOrInvalid(InvalidRequest):
    """The realtime mask is missing, or leaves no CPU for anything else."""


class InvalidEmulatorThreadsPolicy(InvalidRequest):
    """There is no such policy for the emulator's threads."""


class BadRequirementEmulatorThreadsPolicy(InvalidRequest):
    """The emulator can be isolated only beside pinned CPUs."""


class RequiredMixedInstancePolicy(InvalidRequest):
    """A mask of dedicated CPUs without the mixed policy."""


class RequiredMixedOrRealtimeCPUMask(InvalidRequest):
    """The mixed policy needs one mask that says which CPUs are dedicated."""


class InvalidMixedInstanceDedicatedMask(InvalidRequest):
    """The mask of dedicated CPUs names others, or leaves none of one kind."""
