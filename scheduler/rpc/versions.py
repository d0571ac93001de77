"""Caps on the version of the scheduler's RPC interface (reference page rpc, section 3)."""

from __future__ import annotations

import re
from typing import Final

from scheduler import errors

OPTION: Final = "[upgrade_levels] scheduler"

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
    version = ALIASES.get(value, value)
    if not VERSION_PATTERN.fullmatch(version):
        reason = f"{value!r} is neither a version such as 4.4 nor one of {', '.join(ALIASES)}"
        raise errors.ConfigurationError(option=OPTION, reason=reason)
    return version
