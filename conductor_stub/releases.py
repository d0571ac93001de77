"""The versions of wire classes that each release of Nova understood (page objects, section 8)."""

import functools

_RELEASES = (
    "Kilo Liberty Mitaka Newton Ocata Pike Queens Rocky Stein Train Ussuri Victoria Wallaby Xena"
    " Yoga Zed 2023.1 2023.2 2024.1 2024.2 2025.1 2025.2 34"
)
RELEASES = _RELEASES.split()

HISTORY: dict[str, str] = {
    "RequestSpec": "1.4@Liberty 1.5@Mitaka 1.6@Newton 1.8@Ocata 1.11@Rocky 1.12@Stein 1.13@Ussuri"
    " 1.14@Wallaby 1.15@2024.1",
    "Destination": "1.0@Newton 1.1@Pike 1.2@Rocky 1.4@Train",
    "Selection": "1.0@Queens 1.1@Ussuri",
    "Flavor": "1.1@Kilo 1.2@Queens",
    "ImageMeta": "1.7@Liberty 1.8@Mitaka",
    "ImageMetaProps": "1.12@Mitaka 1.15@Newton 1.16@Ocata 1.19@Pike 1.20@Rocky 1.21@Stein"
    " 1.24@Train 1.25@Ussuri 1.27@Victoria 1.29@Wallaby 1.30@Xena 1.31@Yoga 1.34@Zed 1.37@2024.1"
    " 1.38@2024.2 1.39@2025.1 1.42@2025.2 1.44@34",
    "InstanceGroup": "1.9@Kilo 1.10@Liberty 1.11@Rocky",
    "InstanceNUMATopology": "1.1@Kilo 1.2@Liberty 1.3@Ocata",
    "InstanceNUMACell": "1.2@Kilo 1.3@Mitaka 1.4@Ocata 1.6@Victoria",
    "NUMACell": "1.2@Kilo 1.3@Rocky 1.4@Train 1.5@Wallaby",
    "NUMAPagesTopology": "1.0@Kilo 1.1@Newton",
    "NUMATopologyLimits": "1.0@Kilo 1.1@Rocky",
    "InstancePCIRequest": "1.1@Kilo 1.2@Queens 1.3@Stein 1.4@Wallaby",
    "ComputeNode": "1.11@Kilo 1.14@Liberty 1.16@Mitaka 1.18@Pike 1.19@Train",
    "ComputeNodeList": "1.11@Kilo 1.14@Liberty 1.15@Newton 1.16@Ocata 1.17@Pike",
    "Service": "1.12@Kilo 1.18@Liberty 1.19@Mitaka 1.20@Newton 1.22@Pike",
    "Aggregate": "1.1@Kilo 1.2@Mitaka 1.3@Newton",
    "AggregateList": "1.2@Kilo 1.3@Rocky",
    "Instance": "1.19@Kilo 2.1@Mitaka 2.3@Newton 2.4@Rocky 2.7@Train 2.8@2023.2",
    "InstanceList": "1.16@Kilo 2.0@Mitaka 2.1@Newton 2.2@Ocata 2.4@Pike 2.6@Train",
    "NetworkRequest": "1.1@Kilo 1.2@Newton 1.3@Xena",
    "BlockDeviceMapping": "1.8@Kilo 1.15@Liberty 1.16@Mitaka 1.17@Newton 1.18@Pike 1.19@Queens"
    " 1.20@Stein 1.21@Zed",
    "BlockDeviceMappingList": "1.9@Kilo 1.16@Liberty 1.17@Mitaka 1.18@Wallaby",
    "HVSpec": "1.0@Kilo 1.1@Liberty 1.2@Mitaka",
    "RequestGroup": "1.1@Stein 1.3@Train",
    "RequestLevelParams": "1.0@Ussuri 1.1@Xena",
    "SecurityGroup": "1.1@Kilo 1.2@Ocata",
    "SecurityGroupList": "1.0@Kilo 1.1@Pike",
    "CellMapping": "1.0@Kilo 1.1@Rocky",
}
"""Class name to the versions that releases shipped: ``version@first release``, oldest first.

Classes that never changed are left out.
"""


@functools.cache
def versions_of(release: str) -> dict[str, str]:
    """The version in *release*, one of ``RELEASES``, of every class that has several."""
    newest = RELEASES.index(release)
    found = {}
    for name, history in HISTORY.items():
        rows = [row.split("@") for row in history.split()]
        known = [version for version, first in rows if RELEASES.index(first) <= newest]
        found[name] = known[-1] if known else rows[0][0]
    return found
