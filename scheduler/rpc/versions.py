"""Caps on the version of the scheduler's RPC interface (reference page rpc, section 3)."""

from __future__ import annotations

import re
from typing import Final

from scheduler import errors

OPTION: Final = "[upgrade_levels] scheduler"
BASE_OPTION: Final = "[upgrade_levels] baseapi"

ALIASES: Final = {
    "grizzly": "2.6",
    "havana": "2.9",
    "icehouse": "3.0",
    "juno": "3.0",
    "kilo": "4.2",
    "liberty": "4.2",
    "mitaka": "4.3",
    "newton": "4.3",
    "ocata": "4.3",
    "pike": "4.4",
}
"""Releases by name; from Queens on the interface is 4.5 and there is nothing to cap."""

VERSION_PATTERN: Final = re.compile(r"\d+\.\d+")


def cap_from(value: str | None) -> str | None:
    """The version that *value* of the option caps at; None for no cap.

    Raises ConfigurationError for what is neither a release with a cap nor a version.
    """
    if value is None:
        return None
    known = f" nor one of {', '.join(ALIASES)}"
    return _version(OPTION, ALIASES.get(value, value), f"{value!r} is neither", known)


def base_cap_from(value: str | None) -> str | None:
    """The same for ``[upgrade_levels] baseapi``, whose versions no release has a name for."""
    return None if value is None else _version(BASE_OPTION, value, f"{value!r} is not", "")


def _version(option: str, version: str, is_none: str, or_else: str) -> str:
    if not VERSION_PATTERN.fullmatch(version):
        reason = f"{is_none} a version such as 4.4{or_else}"
        raise errors.ConfigurationError(option=option, reason=reason)
    return version
