"""Server groups."""

from __future__ import annotations

from typing import Any

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
        if name == "policy" and not self.__dict__.get("policies"):
            self.__dict__["policies"] = [] if self.policy is None else [self.policy]
        elif name == "policies" and not self.__dict__.get("policy"):
            self._policy_from_policies()

    @property
    def rules(self) -> dict[str, Any]:
        """The rules with their types: ``max_server_per_host`` is an int."""
        return {
            name: int(value) if name == "max_server_per_host" else value
            for name, value in self._rules.items()
        }

    def _policy_from_policies(self) -> None:
        policies = self.__dict__.get("policies")
        self.__dict__["policy"] = policies[0] if policies else None

    def _upgrade(self, version: Version) -> None:
        if version < (1, 11) and "policies" in self.__dict__:
            self._policy_from_policies()

    def _downgrade(self, data: dict[str, Any], version: Version) -> None:
        if version < (1, 11) and data.get("policy"):
            data["policies"] = [data["policy"]]
