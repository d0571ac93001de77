"""Recorded cases that are decided otherwise on purpose, each with its reason.

The compatibility page repeats this list.
"""

from __future__ import annotations

from collections.abc import Mapping

_RULE_NOT_CARRIED = (
    "the request is in the old form of server groups, which cannot carry the rule "
    "max_server_per_host that the recorded decision rests on"
)

_READ_ANYWAY = "what a host reports is read whatever minor version or older text form it has"

REASONS: Mapping[str, str] = {
    "filter_server_group_anti_affinity/d0139": _RULE_NOT_CARRIED,
    "filter_server_group_anti_affinity/d0172": _RULE_NOT_CARRIED,
    "numa_pci_examples/host_json_empty_object@2026": _READ_ANYWAY,
    "numa_pci_examples/host_json_legacy@2026": _READ_ANYWAY,
    "numa_pci_examples/host_json_too_new@2026": _READ_ANYWAY,
    "numa_pci_examples/host_json_too_new@newton": _READ_ANYWAY,
}
