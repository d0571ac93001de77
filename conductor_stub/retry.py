"""Counting the attempts to build one instance, and noting where they went.

Reference page conductor, sections 3.1 and 3.2.  The functions take filter properties and return
changed copies; what was given stays as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging

from scheduler import errors

LOG = logging.getLogger(__name__)


def why_not_retried(properties: Mapping[str, Any], max_attempts: int) -> str | None:
    """Why a failed build of this request is final, or None when it may be tried elsewhere."""
    if max_attempts == 1:
        return "only one attempt is configured"
    for key in ("force_hosts", "force_nodes"):
        forced = properties.get(key) or []
        if len(forced) == 1:
            return f"{key} names exactly one"
    return None


def attempts(properties: Mapping[str, Any]) -> int:
    """How many attempts the request has had, the present one included; 1 without any record."""
    return int((properties.get("retry") or {}).get("num_attempts", 1))


def populate_retry(
    properties: Mapping[str, Any], instance_uuid: str, max_attempts: int
) -> dict[str, Any]:
    """The properties with one attempt more on their ``retry`` record.

    Nothing is recorded where a failed build is final.  Raises MaxRetriesExceeded when this
    attempt is one more than *max_attempts*.
    """
    counted = copy.deepcopy(dict(properties))
    final = why_not_retried(counted, max_attempts)
    if final:
        LOG.debug("A failed build of instance %s is not retried: %s", instance_uuid, final)
        return counted
    retry = counted.get("retry") or {"num_attempts": 0, "hosts": []}
    counted["retry"] = retry
    retry["num_attempts"] = retry.get("num_attempts", 0) + 1
    _log_last_host(retry, instance_uuid)
    reason = retry.pop("exc_reason", None)
    if retry["num_attempts"] > max_attempts:
        raise errors.MaxRetriesExceeded(
            reason=f"Exceeded max scheduling attempts {max_attempts} for instance "
            f"{instance_uuid}. Last exception: {reason}"
        )
    return counted


def _log_last_host(retry: Mapping[str, Any], instance_uuid: str) -> None:
    exc, hosts = retry.get("exc"), retry.get("hosts")
    if not exc or not hosts:
        return
    last_host, last_node = hosts[-1]
    LOG.error(
        "Error from last host: %s (node %s): %s",
        last_host,
        last_node,
        "".join(exc) if isinstance(exc, list) else exc,
        extra={"instance_uuid": instance_uuid},
    )


def populate_filter_properties(
    properties: Mapping[str, Any], host: str, node: str | None, limits: Mapping[str, Any]
) -> dict[str, Any]:
    """The properties for one instance that goes to (*host*, *node*).

    The host joins the ``retry`` record if there is one, and the host's *limits* are noted; a
    forced host carries none.
    """
    local = copy.deepcopy(dict(properties))
    if local.get("retry"):
        local["retry"].setdefault("hosts", []).append([host, node])
    if not local.get("force_hosts"):
        local["limits"] = dict(limits)
    return local
