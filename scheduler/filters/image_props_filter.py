"""ImagePropertiesFilter: the hypervisor can run the image.  Reference page filters, 6.11."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler import objects, semantics
from scheduler.filters import host_attributes
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.filters.host_attributes import Verdict
from scheduler.hosts.candidates import Candidates
from scheduler.objects import enums

UNKNOWN = Reason("image.unknown", "the host does not say what it can run")
UNSUPPORTED = Reason("image.unsupported", "architecture, hypervisor type or mode do not fit")
VERSION = Reason("image.hypervisor_version", "the hypervisor's version is not the one asked for")
ADDRESS_BITS = Reason("image.address_bits", "the host has too few physical address bits")

_TRIPLE = (enums.canonical_architecture, enums.canonical_hypervisor_type, enums.canonical_vm_mode)
_NAMED = (
    *("hw_architecture", "img_hv_type", "hw_vm_mode", "img_hv_requested_version"),
    "hw_maxphysaddr_bits",
)
_ADDRESS_BITS = ("cpu_info", "maxphysaddr", "bits")


class ImagePropertiesFilter(HostFilter):
    """Passes hosts that support the image; one that names nothing to run on fits anywhere."""

    run_filter_once_per_request = True
    RUN_ON_REBUILD = True
    reasons = (UNKNOWN, UNSUPPORTED, VERSION, ADDRESS_BITS)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.architecture = conf.filter_scheduler.image_properties_default_architecture
        self.version_test = semantics.from_conf(conf).version_test

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Look for all that is named in one supported triple; then at version and address bits.

        Raises InvalidRequest for a version requirement that cannot be read.
        """
        properties = objects.ImageMetaProps() if request.image is None else request.image.properties
        architecture, kind, mode, requirement, bits = map(properties.get, _NAMED)
        wanted = {architecture or self.architecture, kind, mode} - {None, ""}
        if not wanted:
            return
        yield UNKNOWN, hosts.per_document("supported_instances", bool, key="any")

        def supports(entries: list[Any]) -> bool:
            return any(wanted <= _runs(each) for each in entries)

        supported = hosts.per_document(
            "supported_instances", supports, key=("supports", frozenset(wanted))
        )
        yield UNSUPPORTED, supported
        if requirement:
            fitting = np.flatnonzero(supported)
            test = self.version_test(requirement)
            versions, at = np.unique(hosts.hypervisor_version[fitting], return_inverse=True)
            satisfied = hosts.everything(True)
            satisfied[fitting] = np.array([test(int(each)) for each in versions], np.bool_)[at]
            yield VERSION, satisfied
        if bits:
            # More digits than int() takes are nonsense of one host.
            judged = host_attributes.judge(
                hosts, _ADDRESS_BITS, lambda text: not text.isdecimal() or int(text[:9]) >= bits
            )
            yield ADDRESS_BITS, judged != Verdict.REFUSED


def _runs(entry: Any) -> set[str]:
    parts = entry if isinstance(entry, list) else ()
    return {canonical(str(part)) for canonical, part in zip(_TRIPLE, parts, strict=False)}
