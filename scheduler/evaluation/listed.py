"""Recorded cases that are decided otherwise on purpose, each with its reason.

The compatibility page repeats the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping

#: A case that is marked as an unhandled exception of Nova and is not listed by name.
GENTLER = (
    "Nova fails there with an unhandled exception, which one odd host or document is not worth; "
    "the request gets its answer"
)

#: By reason, the cases of each suite.
_LISTED: Mapping[str, Mapping[str, str]] = {
    "the request is in the old form of server groups, which cannot carry the rule "
    "max_server_per_host that the recorded decision rests on": {
        "filter_server_group_anti_affinity": "d0139 d0172",
    },
    "what a host reports is read whatever minor version or older text form it has": {
        "numa_pci_examples": "host_json_empty_object@2026 host_json_legacy@2026 "
        "host_json_too_new@2026 host_json_too_new@newton",
    },
    "a statistic of one host that is not a number, or a document of it that is not of its kind, "
    "counts as none there; it does not fail every request": {
        "host_state_rows": "d0011 d0013 d0014 d0017 d0021 d0026 d0028 d0043 d0047 d0054 d0065 "
        "d0081 d0083 d0088 d0106 d0111 d0120 d0125 d0129 d0132 d0138 d0147",
    },
    "a host that never filled in its row is judged as one that has nothing; it does not fail every "
    "request": {
        "chain_2026_default": "d0060 d0064 d0101 d0132 d0145 d0197",
        "chain_newton_mixed": "d0027",
        "chain_shared_mixed": "d0047 d0165",
    },
    "servers placed earlier by the same request are weighed by their image like all others; Nova "
    "fails on them": {
        "weights_all_2026": "d0009 d0018 d0020 d0028 d0048 d0051 d0067 d0091 d0118 d0136 d0145 "
        "d0168 d0175 d0182 d0199 d0235 d0239 d0240 d0248",
    },
}

#: By the name of the case.
REASONS: Mapping[str, str] = {
    f"{suite}/{case}": reason
    for reason, suites in _LISTED.items()
    for suite, cases in suites.items()
    for case in cases.split()
}
