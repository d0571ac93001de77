"""Records that pass from one stage of a build to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conductor_stub.wire_objects import networks_of
from scheduler import errors, objects
from scheduler.rpc.context import RequestContext


def refuse_unknown(given: Iterable[str], known: str) -> None:
    """Raise InvalidRequest naming the first argument *given* that is none of *known*."""
    for name in given:
        if name not in known.split():
            raise errors.InvalidRequest(field=name, reason="no such argument")


HostList = list[objects.Selection]
"""The host chosen for one instance, and its alternates."""
HostLists = list[HostList]


def limits_of(selection: objects.Selection) -> dict[str, Any]:
    """The limits of a host by name; empty where filters noted none."""
    return {} if selection.limits is None else selection.limits.to_dict()


def take_first(candidates: HostList, instance_uuid: str) -> objects.Selection:
    """The first candidate, which leaves the list; raises NoValidHost when there is none."""
    if not candidates:
        reason = f"The scheduler named no host for instance {instance_uuid}."
        raise errors.NoValidHost(reason=reason)
    return candidates.pop(0)


@dataclass(frozen=True)
class Order:
    """The request of the caller, the same for every instance of the batch."""

    context: RequestContext
    image: dict[str, Any]
    admin_password: str | None
    injected_files: list[Any]
    requested_networks: objects.NetworkRequestList | None
    security_groups: list[str]

    @classmethod
    def from_arguments(
        cls, context: RequestContext, given: Mapping[str, Any], unread: str = ""
    ) -> Order:
        """Read the arguments of a call, which may have those *unread*, too, but no others."""
        refuse_unknown(given, f"{' '.join(cls.__dataclass_fields__)} {unread}")
        networks = given.get("requested_networks") or None
        if networks is not None and not isinstance(networks, objects.NetworkRequestList):
            networks = networks_of(networks)
        return cls(
            context=context,
            image=given.get("image") or {},
            admin_password=given.get("admin_password"),
            injected_files=given.get("injected_files") or [],
            requested_networks=networks,
            security_groups=given.get("security_groups") or [],
        )

    def arguments(self) -> dict[str, Any]:
        """The order as arguments of casts, without its context."""
        return {name: value for name, value in vars(self).items() if name != "context"}


@dataclass(frozen=True)
class Plan:
    """The hosts found, and the request, the same for every instance of the batch.

    ``request_spec`` is the object of the caller, if any; ``legacy_spec`` the dict made from it or
    from the instances.  ``filter_properties`` already count this attempt.  A plan that
    ``needs_claim`` has alternates that are not claimed yet.  With ``is_new`` the instance was
    made for this build alone: its host gets ``spec``, and a cancelled build leaves nothing.
    """

    order: Order
    spec: objects.RequestSpec
    legacy_spec: dict[str, Any]
    filter_properties: dict[str, Any]
    request_spec: objects.RequestSpec | None
    needs_claim: bool
    is_new: bool = False


@dataclass(frozen=True)
class MoveRequest:
    """One server that is to have *flavor* on another host.

    *filter_properties* name earlier attempts and hosts to avoid.  *host_list* are the alternates
    that are left of an attempt that failed; None from a sender that knows none.
    """

    context: RequestContext
    instance: objects.Instance
    flavor: objects.Flavor
    filter_properties: dict[str, Any]
    request_spec: objects.RequestSpec | None = None
    clean_shutdown: bool = True
    host_list: list[objects.Selection] | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``migrate_server``, except ``host_list``."""
        return {
            "instance": self.instance,
            "scheduler_hint": {"filter_properties": self.filter_properties},
            "live": False,
            "rebuild": False,
            "flavor": self.flavor,
            "block_migration": None,
            "disk_over_commit": None,
            "reservations": None,
            "clean_shutdown": self.clean_shutdown,
            "request_spec": self.request_spec,
        }
