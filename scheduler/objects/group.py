"""Server groups."""

from __future__ import annotations

from typing import Any, Self

from scheduler import errors
from scheduler.objects.base import PERSISTENT, WireObject
from scheduler.objects.fields import INT, STR, UUID, DictOf, Field, ListOf
from scheduler.objects.registry import register
from scheduler.objects.versions import Version


@register
class InstanceGroup(WireObject):
    """A server group, its members and the hosts they run on (objects page, 3).

    Older senders know only ``policies``, newer ones mean ``policy``; whichever is assigned, both
    are kept in step.  ``hosts`` reads as an empty list when nobody filled it in.
    """

    VERSION = "1.11"
    FIELDS = {
        "id": Field(INT),
        "user_id": Field(STR, nullable=True),
        "project_id": Field(STR, nullable=True),
        "uuid": Field(UUID),
        "name": Field(STR, nullable=True),
        "policies": Field(ListOf(STR), nullable=True, unset=list),
        "members": Field(ListOf(STR), nullable=True, unset=list),
        "hosts": Field(ListOf(STR), nullable=True, unset=list),
        "policy": Field(STR, nullable=True, since=(1, 11)),
        "_rules": Field(DictOf(STR), unset=dict, since=(1, 11)),
        **PERSISTENT,
    }

    def __init__(self, rules: dict[str, Any] | None = None, **values: Any) -> None:
        super().__init__(**values)
        if rules is not None:
            self._rules = rules

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("policy", "policies"):
            self._level(name)

    @classmethod
    def read(cls, envelope: dict[str, Any]) -> Self:
        """Decode; a sender from before ``policy`` gets one, the first of its policies."""
        group = super().read(envelope)
        for name in ("policy", "policies"):
            if group.__dict__.get(name):
                group._level(name)
        return group

    def _level(self, leader: str) -> None:
        """Make the other of ``policy`` and ``policies`` agree with the one named."""
        values = self.__dict__
        policy, policies = values.get("policy"), values.get("policies") or ()
        if policy is not None and policy in policies:
            return
        if leader == "policy":
            values["policies"] = [] if policy is None else [policy]
        else:
            values["policy"] = policies[0] if policies else None

    @property
    def rules(self) -> dict[str, Any]:
        """The rules with their types: ``max_server_per_host`` is an int; InvalidRequest if not."""
        rules: dict[str, Any] = dict(self._rules)
        if "max_server_per_host" in rules:
            try:
                rules["max_server_per_host"] = int(rules["max_server_per_host"])
            except ValueError as exc:
                raise errors.InvalidRequest(field="InstanceGroup.rules", reason=str(exc)) from exc
        return rules

    def _downgrade(self, data: dict[str, Any], version: Version) -> None:
        policy = data.get("policy")
        if version < (1, 11) and policy is not None and policy not in (data.get("policies") or ()):
            data["policies"] = [policy]
