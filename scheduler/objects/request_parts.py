"""The smaller objects that a request is made of (reference page objects, sections 3 and 7)."""

from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from scheduler import errors
from scheduler.objects.base import PERSISTENT, ListObject, WireObject
from scheduler.objects.fields import IP, SIZE, BadValue, Field, fields, mapping
from scheduler.objects.host import CellMapping, ComputeNode, ComputeNodeList
from scheduler.objects.registry import Version


class Flavor(WireObject):
    """The size of a server; ``swap`` and ``memory_mb`` in MB, the disks in GB."""

    VERSION = "1.2"
    FIELDS = {
        "id": Field(int),
        "name": Field(str, nullable=True),
        **fields(SIZE, "memory_mb vcpus root_gb ephemeral_gb"),
        "flavorid": Field(str),
        "swap": Field(SIZE),
        "rxtx_factor": Field(float, nullable=True, default=1.0),
        "vcpu_weight": Field(int, nullable=True),
        **fields(bool, "disabled is_public"),
        "extra_specs": Field(dict[str, str], unset=dict),
        "projects": Field(list[str], unset=list),
        "description": Field(str, nullable=True, since=(1, 2)),
        **PERSISTENT,
    }


class InstanceGroup(WireObject):
    """A server group, its members and the hosts they run on.

    Older senders know only ``policies``, newer ones mean ``policy``; assigning one keeps both
    in step.  An unset ``hosts`` reads as an empty list.
    """

    VERSION = "1.11"
    FIELDS = {
        "id": Field(int),
        **fields(str, "user_id project_id", nullable=True),
        "uuid": Field(UUID),
        "name": Field(str, nullable=True),
        **fields(list[str], "policies members hosts", nullable=True, unset=list),
        "policy": Field(str, nullable=True, since=(1, 11)),
        "_rules": Field(dict[str, str], unset=dict, since=(1, 11)),
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
        """Decode; without a ``policy`` the first of the policies is taken."""
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


class SecurityGroup(WireObject):
    """A security group; in a request only ``uuid`` or ``name`` is set."""

    VERSION = "1.2"
    FIELDS = {
        "id": Field(int),
        **fields(str, "name description user_id project_id"),
        "uuid": Field(UUID, since=(1, 2)),
        **PERSISTENT,
    }


class SecurityGroupList(ListObject, of=SecurityGroup, version="1.1"):
    """Security groups."""


class NetworkRequest(WireObject):
    """One network or port."""

    VERSION = "1.3"
    FIELDS = {
        "network_id": Field(str, nullable=True),
        "address": Field(IP, nullable=True),
        **fields(UUID, "port_id pci_request_id", nullable=True),
        "tag": Field(str, nullable=True),
        "arq_uuid": Field(UUID, nullable=True, since=(1, 3)),
        "device_profile": Field(str, nullable=True, since=(1, 3)),
    }


class NetworkRequestList(ListObject, of=NetworkRequest, version="1.1"):
    """All networks of a request."""


class Destination(WireObject):
    """The required host or cell of a request; with only ``cell`` set it pins no host."""

    VERSION = "1.4"
    FIELDS = {
        "host": Field(str),
        "node": Field(str, nullable=True),
        "cell": Field(CellMapping, nullable=True, since=(1, 1)),
        "aggregates": Field(list[str], nullable=True, default=None, since=(1, 2)),
        "allow_cross_cell_move": Field(bool, default=False, since=(1, 3)),
        "forbidden_aggregates": Field(set[str], nullable=True, default=None, since=(1, 4)),
    }


class SchedulerRetries(WireObject):
    """The attempts of a build and their hosts; with nothing set it is no retry."""

    VERSION = "1.1"
    FIELDS = {"num_attempts": Field(int), "hosts": Field(ComputeNodeList)}

    @classmethod
    def read_dict(cls, retry: Mapping[str, Any]) -> Self:
        """Read ``{"num_attempts", "hosts": [[host, node], …]}``; other keys are dropped.

        Without ``hosts`` nothing is set.  Raises BadValue for malformed entries or when
        ``num_attempts`` is missing.
        """
        if "hosts" not in mapping(retry):
            return cls()
        entries = retry["hosts"] or []
        if not isinstance(entries, list) or not all(_is_pair(entry) for entry in entries):
            raise BadValue("every entry must be [host, node]", "hosts")
        attempts = cls.FIELDS["num_attempts"].accept("num_attempts", retry.get("num_attempts"))
        nodes = [ComputeNode(host=host, hypervisor_hostname=node) for host, node in entries]
        return cls(num_attempts=attempts, hosts=ComputeNodeList(objects=nodes))

    def to_dict(self) -> dict[str, Any]:
        """The legacy dict; empty when nothing is set."""
        if not self.is_set("hosts"):
            return {}
        hosts = [[node.host, node.hypervisor_hostname] for node in self.hosts]
        return {"num_attempts": self.num_attempts, "hosts": hosts}


def _is_pair(entry: Any) -> bool:
    is_pair = isinstance(entry, (list, tuple)) and len(entry) == 2
    return is_pair and isinstance(entry[0], str) and isinstance(entry[1], str | None)


class RequestGroup(WireObject):
    """Resources that must come from one provider; created with all defaults."""

    VERSION = "1.3"
    FILL_DEFAULTS = True
    FIELDS = {
        "use_same_provider": Field(bool, default=True),
        "resources": Field(dict[str, int], default=dict),
        **fields(set[str], "required_traits forbidden_traits", default=set),
        "aggregates": Field(list[list[str]], default=list),
        "forbidden_aggregates": Field(set[str], default=set),
        "requester_id": Field(str, nullable=True, default=None),
        "provider_uuids": Field(list[UUID], default=list),
        "in_tree": Field(UUID, nullable=True, default=None),
    }


class RequestLevelParams(WireObject):
    VERSION = "1.1"
    FIELDS = {
        **fields(set[str], "root_required root_forbidden", default=set),
        "same_subtree": Field(list[list[str]], default=list),
    }
