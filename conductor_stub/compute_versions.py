"""Which version of the compute interface to speak (reference page conductor, section 8).

A version is a (major, minor) pair of numbers.
"""

from __future__ import annotations

from scheduler import errors

Version = tuple[int, int]

OPTION = "[upgrade_levels] compute"
ALIASES: dict[str, Version] = {
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

#: Newest first: what build_and_run_instance is sent as.
BUILD_VERSIONS: tuple[Version, ...] = ((6, 0), (5, 11), (5, 0), (4, 19), (4, 0))
TERMINATE_VERSIONS: tuple[Version, ...] = ((6, 0), (5, 0), (4, 0))


def parse_cap(value: str | None) -> Version | None:
    """The cap that *value* (release name or ``N.N``) stands for; None for no cap.

    Raises ConfigurationError when it is neither, or older than 4.0.
    """
    if not value:
        return None
    cap = ALIASES.get(value.lower()) or _literal(value)
    if cap is None or cap < (4, 0):
        raise errors.ConfigurationError(
            option=OPTION,
            reason=f"{value!r} is not a version from 4.0 on, the name of a release from kilo on, "
            f"or {AUTO}",
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


def newest(versions: tuple[Version, ...], cap: Version | None) -> Version:
    """The newest of *versions* (newest first) that *cap* allows: same major, no later minor."""
    for version in versions:
        if cap is None or (version[0] == cap[0] and version[1] <= cap[1]):
            return version
    raise errors.ConfigurationError(
        option=OPTION, reason=f"nothing can be sent to computes at {cap}"
    )
