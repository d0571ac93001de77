"""Counting attempts as Havana's scheduler did itself (reference page scheduling, 13.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler import errors


def count(filter_properties: dict[str, Any], instance_uuid: str | None, max_attempts: int) -> None:
    """Note in *filter_properties* that this is one attempt more.

    Nothing is noted where a failed build is final: one attempt configured, or a forced host.
    Raises NoValidHost when it is one more than *max_attempts*, InvalidRequest for a ``retry`` that
    cannot be counted on.
    """
    if max_attempts == 1 or _is_forced(filter_properties):
        filter_properties.pop("retry", None)
        return
    retry = filter_properties.get("retry") or {"num_attempts": 0, "hosts": []}
    retry["num_attempts"] = _attempts_of(retry) + 1
    filter_properties["retry"] = retry
    if retry["num_attempts"] > max_attempts:
        raise errors.NoValidHost(
            reason=f"Exceeded max scheduling attempts {max_attempts} for instance {instance_uuid}",
            error_code=errors.ATTEMPTS_EXHAUSTED,
        )


def note(filter_properties: dict[str, Any], chosen: Mapping[str, Any]) -> None:
    """Note the host *chosen* and its limits; a forced host is not noted, and has no limits."""
    if _is_forced(filter_properties):
        return
    retry = filter_properties.get("retry")
    if retry:
        retry["hosts"] = [*(retry.get("hosts") or ()), [chosen["host"], chosen["nodename"]]]
    filter_properties["limits"] = chosen["limits"] or {}


def _is_forced(filter_properties: Mapping[str, Any]) -> bool:
    return bool(filter_properties.get("force_hosts") or filter_properties.get("force_nodes"))


def _attempts_of(retry: Any) -> int:
    """How many attempts a ``retry`` that came with a request speaks of."""
    if not isinstance(retry, dict) or not isinstance(retry.get("hosts"), list | None):
        raise errors.InvalidRequest(
            field="filter_properties.retry", reason="a dict with a list of hosts is needed"
        )
    try:
        return int(retry.get("num_attempts") or 0)
    except (TypeError, ValueError):
        raise errors.InvalidRequest(
            field="filter_properties.retry.num_attempts", reason="not a whole number"
        ) from None
