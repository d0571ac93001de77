"""Filters by what a compute host reports of its service, its hypervisor and its metrics.

Reference page filters, sections 6.2, 6.11, 6.17 and 6.23; operators: section 5.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler import errors, objects, semantics
from scheduler.conf.filter_scheduler import parse_ratios
from scheduler.filters import extra_specs_ops, host_attributes
from scheduler.filters.base import Condition, HostFilter, Reason, extra_specs_of
from scheduler.filters.host_attributes import Verdict
from scheduler.hosts.candidates import Candidates
from scheduler.objects import enums

DISABLED = Reason("compute.disabled", "the compute service is disabled")
DOWN = Reason("compute.down", "the compute service has not been heard from in a while")
UNKNOWN = Reason("image.unknown", "the host does not say what it can run")
UNSUPPORTED = Reason("image.unsupported", "architecture, hypervisor type or mode do not fit")
VERSION = Reason("image.hypervisor_version", "the hypervisor's version is not the one asked for")
FEW_BITS = Reason("image.address_bits", "the host has too few physical address bits")
MISSING = Reason("capabilities.missing", "the host does not report what an extra spec names")
REFUSED = Reason("capabilities.refused", "what the host reports does not satisfy an extra spec")
NO_METRIC = Reason("metrics.missing", "the host lacks a metric that the weights need")

_TRIPLE = (enums.canonical_architecture, enums.canonical_hypervisor_type, enums.canonical_vm_mode)
_OF_IMAGE = (
    *("hw_architecture", "img_hv_type", "hw_vm_mode", "img_hv_requested_version"),
    "hw_maxphysaddr_bits",
)
_ADDRESS_BITS = ["cpu_info", "maxphysaddr", "bits"]


class ComputeFilter(HostFilter):
    """Passes hosts whose compute service is enabled, not forced down, and heard from in time."""

    run_filter_once_per_request = True
    reasons = (DISABLED, DOWN)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Enabled, and up as the candidates' clock has it."""
        del request
        yield DISABLED, ~hosts.service_disabled
        yield DOWN, hosts.service_up


class ImagePropertiesFilter(HostFilter):
    """Passes hosts that support the image; one that names nothing to run on fits anywhere."""

    run_filter_once_per_request = True
    RUN_ON_REBUILD = True
    reasons = (UNKNOWN, UNSUPPORTED, VERSION, FEW_BITS)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.architecture = conf.filter_scheduler.image_properties_default_architecture
        self.version_test = semantics.from_conf(conf).version_test

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """One supported triple holds all that is named; then version and address bits.

        Raises InvalidRequest for a version requirement that cannot be read.
        """
        properties = objects.ImageMetaProps() if request.image is None else request.image.properties
        architecture, kind, mode, requirement, bits = map(properties.get, _OF_IMAGE)
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
            satisfied = hosts.everything(True)
            satisfied[fitting] = hosts.take(fitting).per_value("hypervisor_version", test)
            yield VERSION, satisfied
        if bits:
            judged = host_attributes.judge(
                hosts, _ADDRESS_BITS, lambda text: not text.isdecimal() or int(text) >= bits
            )
            yield FEW_BITS, judged != Verdict.REFUSED


def _runs(entry: Any) -> set[str]:
    parts = entry if isinstance(entry, list) else ()
    return {canonical(str(part)) for canonical, part in zip(_TRIPLE, parts, strict=False)}


class ComputeCapabilitiesFilter(HostFilter):
    """Passes hosts that satisfy every extra spec ``capabilities:PATH`` and unscoped ``NAME``.

    An unscoped name that a host does not know is ignored there: it may be another filter's.
    """

    run_filter_once_per_request = True
    reasons = (MISSING, REFUSED)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Each extra spec in turn, asked only of the hosts that satisfy the ones before it.

        Raises InvalidRequest where an operator cannot compare what it is given.
        """
        left = np.arange(len(hosts))
        for key, requirement in extra_specs_of(request).items():
            path, wanted, must_know = _demand(key, requirement)
            if not path:
                continue
            verdicts = _judged(hosts.take(left), key, path, wanted)
            missing = verdicts == Verdict.MISSING
            if must_know:
                missing |= verdicts == Verdict.UNKNOWN
            refused = verdicts == Verdict.REFUSED
            for reason, failed in ((MISSING, missing), (REFUSED, refused)):
                mask = hosts.everything(True)
                mask[left[failed]] = False
                yield reason, mask
            left = left[~(missing | refused)]


def _demand(key: str, requirement: str) -> tuple[list[str], str, bool]:
    """Path, requirement and whether the host must know the name; no path: not ours to judge."""
    if key == "hw:maxphysaddr_bits":
        return _ADDRESS_BITS, f">= {requirement}", True
    parts = key.split(":")
    if len(parts) == 1:
        return parts, requirement, False
    return (parts[1:] if parts[0] == "capabilities" else []), requirement, True


def _judged(hosts: Candidates, key: str, path: list[str], wanted: str) -> np.ndarray:
    try:
        return host_attributes.judge(hosts, path, lambda v: extra_specs_ops.match(v, wanted))
    except ValueError as error:
        field = f"flavor.extra_specs.{key}"
        raise errors.InvalidRequest(field=field, reason=str(error)) from error


class MetricsFilter(HostFilter):
    """Passes hosts that report all metrics of ``[metrics] weight_setting``."""

    reasons = (NO_METRIC,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        settings = parse_ratios(conf.metrics.weight_setting, "metrics.weight_setting")
        self.names = frozenset(name for name, _ratio in settings)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Names are compared exactly."""
        del request
        if self.names:
            names = self.names
            having = hosts.per_document(
                "metrics", lambda found: names <= {each.name for each in found}, key=self
            )
            yield NO_METRIC, having
