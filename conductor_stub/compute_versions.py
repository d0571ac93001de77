"""Which version of the compute interface to speak (reference page conductor, section 8).

A version is a (major, minor) pair of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler import errors
from scheduler.objects import versions

Version = tuple[int, int]

OPTION = "[upgrade_levels] compute"
ALIASES: dict[str, Version] = {
    "icehouse": (3, 23),
    "juno": (3, 35),
    "kilo": (4, 0),
    "liberty": (4, 5),
    "mitaka": (4, 11),
    "newton": (4, 13),
    "ocata": (4, 13),
    "pike": (4, 17),
    "queens": (5, 0),
    "rocky": (5, 0),
    "stein": (5, 1),
    "train": (5, 3),
    "ussuri": (5, 11),
    "victoria": (5, 12),
    "wallaby": (6, 0),
    "xena": (6, 0),
    "yoga": (6, 0),
    "zed": (6, 1),
    "antelope": (6, 2),
    "bobcat": (6, 2),
    "caracal": (6, 3),
    "dalmatian": (6, 3),
    "epoxy": (6, 4),
    "flamingo": (6, 4),
    "gazpacho": (6, 5),
    "hibiscus": (6, 5),
}
AUTO = "auto"

#: What a host that understands so much reads of objects, newest first; newer ones read ours.
RELEASES: tuple[tuple[Version, str], ...] = (
    ((6, 4), "2025.1"),
    ((6, 3), "2024.1"),
    ((6, 2), "2023.1"),
    ((6, 1), "Zed"),
    ((6, 0), "Wallaby"),
    ((5, 12), "Victoria"),
    ((5, 11), "Ussuri"),
    ((5, 3), "Train"),
    ((5, 1), "Stein"),
    ((5, 0), "Queens"),
    ((4, 17), "Pike"),
    ((4, 13), "Newton"),
    ((4, 11), "Mitaka"),
    ((4, 5), "Liberty"),
    ((0, 0), "Kilo"),
)
NEWEST: Version = (6, 5)

#: Lowest ``services.version`` of nova-compute -> what those computes understand; the releases
#: whose number the database page names, so that a release between two counts as the older one.
BY_SERVICE_VERSION: tuple[tuple[int, Version], ...] = (
    (56, (6, 0)),
    (30, (5, 0)),
    (22, (4, 17)),
    (15, (4, 13)),
    (9, (4, 11)),
    (0, (4, 5)),
)

#: Newest first: the versions with arguments of their own, by method.
BUILD_VERSIONS: tuple[Version, ...] = (
    (6, 0),
    (5, 11),
    (5, 0),
    (4, 19),
    (4, 0),
    (3, 40),
    (3, 36),
    (3, 33),
    (3, 23),
)
TERMINATE_VERSIONS: tuple[Version, ...] = ((6, 0), (5, 0), (4, 0), (3, 22))
PREP_RESIZE_VERSIONS: tuple[Version, ...] = (
    (6, 0),
    (5, 1),
    (5, 0),
    (4, 21),
    (4, 18),
    (4, 1),
    (4, 0),
)
CONFIRM_RESIZE_VERSIONS: tuple[Version, ...] = ((6, 0), (5, 0), (4, 0))
UNSHELVE_VERSIONS: tuple[Version, ...] = ((6, 0), (5, 13), (5, 2), (5, 0), (4, 0))
REBUILD_VERSIONS: tuple[Version, ...] = ((6, 0), (5, 12), (5, 0), (4, 22), (4, 5))
OLDEST: Version = BUILD_VERSIONS[-1]


def parse_cap(value: str | None) -> Version | None:
    """The cap that *value* (release name or ``N.N``) stands for; None for no cap.

    Raises ConfigurationError when it is neither, or older than what builds servers.
    """
    if not value:
        return None
    cap = ALIASES.get(value.lower()) or _literal(value)
    if cap is None or cap < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise errors.ConfigurationError(
            option=OPTION,
            reason=f"{value!r} is not a version from {oldest} on, the name of a release from "
            f"icehouse on, or {AUTO}",
        )
    return cap


def _literal(value: str) -> Version | None:
    parts = value.split(".")
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def cap_for_service_version(lowest: int | None) -> Version | None:
    """The cap that keeps the oldest compute service able to read us; None without any."""
    if lowest is None:
        return None
    return next(cap for least, cap in BY_SERVICE_VERSION if lowest >= least)


def newest(known: tuple[Version, ...], cap: Version | None) -> Version:
    """The newest of *known* (newest first) that *cap* allows: same major, no later minor."""
    for version in known:
        if cap is None or (version[0] == cap[0] and version[1] <= cap[1]):
            return version
    shown = ".".join(map(str, cap or ()))
    raise errors.ConfigurationError(
        option=OPTION, reason=f"nothing can be sent to computes at {shown}"
    )


def object_versions(cap: Version | None) -> Mapping[str, str] | None:
    """The versions of objects that hosts up to *cap* read; None where they read ours."""
    if cap is None or cap >= NEWEST:
        return None
    return versions.of_release(next(name for least, name in RELEASES if cap >= least))
