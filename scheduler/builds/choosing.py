"""Attempts, and hosts for the servers of an old request (reference page scheduling, 13.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scheduler import errors, objects
from scheduler.builds.rows import InstanceRows
from scheduler.drivers.selections import as_dict

LIMITS_VERSION = "1.0"
ANTI_AFFINITY = "anti-affinity"


def instance_uuids(request_spec: Mapping[str, Any]) -> list[str]:
    """The servers that *request_spec* names; raises InvalidRequest unless it is a list of texts."""
    if not isinstance(request_spec, Mapping):
        raise errors.InvalidRequest(field="request_spec", reason="a dict is needed")
    uuids = request_spec.get("instance_uuids")
    if not isinstance(uuids, list) or not all(isinstance(each, str) for each in uuids):
        raise errors.InvalidRequest(
            field="request_spec.instance_uuids", reason="a list of uuids is needed"
        )
    return uuids


class Chooser:
    """Asks *driver* for one server at a time, so that some may get a host while others do not."""

    def __init__(
        self,
        driver: Any,
        rows: InstanceRows,
        context: Any,
        request_spec: Mapping[str, Any],
        filter_properties: Mapping[str, Any],
    ) -> None:
        self._driver = driver
        self._context = context
        self._request_spec = request_spec
        self._properties = filter_properties
        self.group = hinted_group(filter_properties)
        self._hosts: list[str] = _texts(filter_properties, "group_hosts")
        self._members: list[str] = []
        if self.group is not None:
            self._hosts += driver.group_hosts(context, self.group)
            self._members += rows.group_members(self.group)

    def choose(self, uuid: str) -> dict[str, Any]:
        """Host, node name and limits for one server; NoValidHost when there is none."""
        spec = self._spec_of(uuid)
        chosen = self._driver.select_destinations(self._context, spec, [uuid])
        if not chosen:
            raise errors.NoValidHost(reason="")
        found = as_dict(chosen[0], LIMITS_VERSION)
        if self.group is not None:
            self._hosts.append(found["host"])
            self._members.append(uuid)
        return found

    def names(self, uuids: Sequence[str]) -> Iterator[str]:
        """Host names for as many of the servers as get one."""
        for uuid in uuids:
            try:
                yield self.choose(uuid)["host"]
            except errors.NoValidHost:
                return

    def _spec_of(self, uuid: str) -> objects.RequestSpec:
        instance = self._request_spec.get("instance_properties")
        own = {**instance, "uuid": uuid} if isinstance(instance, Mapping) else instance
        request_spec = {**self._request_spec, "instance_properties": own, "num_instances": 1}
        properties = dict(self._properties)
        if self.group is not None:
            properties.update(
                group_updated=True,
                group_hosts=self._hosts,
                group_members=self._members,
                group_policies=[ANTI_AFFINITY],
            )
        return objects.RequestSpec.from_primitives(request_spec, properties)


def hinted_group(filter_properties: Mapping[str, Any]) -> str | None:
    """The group that the hints name: servers that name the same one keep apart.

    Raises InvalidRequest for hints that are no dict.
    """
    hints = filter_properties.get("scheduler_hints") or {}
    if not isinstance(hints, Mapping):
        raise errors.InvalidRequest(
            field="filter_properties.scheduler_hints", reason="a dict is needed"
        )
    group = hints.get("group")
    return str(group[0] if isinstance(group, list) else group) if group else None


def _texts(filter_properties: Mapping[str, Any], name: str) -> list[str]:
    found = filter_properties.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise errors.InvalidRequest(
            field=f"filter_properties.{name}", reason="a list of texts is needed"
        )
    return list(found)


def count_attempt(
    filter_properties: dict[str, Any], instance_uuid: str | None, max_attempts: int
) -> None:
    """Count one attempt more in *filter_properties*, as Havana's scheduler did itself.

    Nothing is counted where a failed build is final: one attempt configured, or a forced host.
    Raises NoValidHost when it is one more than *max_attempts*, InvalidRequest for a ``retry`` that
    cannot be counted on.
    """
    if max_attempts == 1 or _is_forced(filter_properties):
        filter_properties.pop("retry", None)
        return
    retry = filter_properties.get("retry") or {"num_attempts": 0, "hosts": []}
    retry["num_attempts"] = _attempts_in(retry) + 1
    filter_properties["retry"] = retry
    if retry["num_attempts"] > max_attempts:
        raise errors.NoValidHost(
            reason=f"Exceeded max scheduling attempts {max_attempts} for instance {instance_uuid}",
            error_code=errors.ATTEMPTS_EXHAUSTED,
        )


def record_choice(filter_properties: dict[str, Any], chosen: Mapping[str, Any]) -> None:
    """Record the host *chosen* and its limits in *filter_properties*, unless it is forced."""
    if _is_forced(filter_properties):
        return
    retry = filter_properties.get("retry")
    if retry:
        retry["hosts"] = [*(retry.get("hosts") or ()), [chosen["host"], chosen["nodename"]]]
    filter_properties["limits"] = chosen["limits"] or {}


def _is_forced(filter_properties: Mapping[str, Any]) -> bool:
    return bool(filter_properties.get("force_hosts") or filter_properties.get("force_nodes"))


def _attempts_in(retry: Any) -> int:
    """The attempts so far, as a request's ``retry`` has them."""
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
