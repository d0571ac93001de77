"""ComputeCapabilitiesFilter: the flavor's extra specs.  Reference page filters, 5.4 and 6.17."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.filters import extra_specs_ops, host_attributes
from scheduler.filters.base import Condition, HostFilter, Reason, extra_specs_of
from scheduler.filters.host_attributes import Verdict
from scheduler.hosts.candidates import Candidates

MISSING = Reason("capabilities.missing", "the host does not report what an extra spec names")
REFUSED = Reason("capabilities.refused", "what the host reports does not satisfy an extra spec")

_SCOPE = "capabilities"
_ADDRESS_BITS = "hw:maxphysaddr_bits"


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
    if key == _ADDRESS_BITS:
        return ["cpu_info", "maxphysaddr", "bits"], f">= {requirement}", True
    parts = key.split(":")
    if len(parts) == 1:
        return parts, requirement, False
    return (parts[1:] if parts[0] == _SCOPE else []), requirement, True


def _judged(hosts: Candidates, key: str, path: list[str], wanted: str) -> np.ndarray:
    with errors.as_invalid(f"flavor.extra_specs.{key}", ValueError):
        return host_attributes.judge(hosts, path, lambda v: extra_specs_ops.match(v, wanted))
