"""What the conductor would ask of services that are not here: network, volumes, accelerators.

Reference page conductor, sections 5 (steps 6.8 and 6.10), 6, 11 and 14.  Every hook does nothing by
default and can be replaced by an argument: ``BuildHooks(deallocate_networks=...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduler import objects
from scheduler.rpc.context import RequestContext


def _no_networks(context: RequestContext, instance: objects.Instance) -> None:
    """Nothing was allocated, so nothing is given back."""


def _attachment_exists(
    context: RequestContext,  # noqa: ARG001
    instance: objects.Instance,  # noqa: ARG001
    bdm: objects.BlockDeviceMapping,  # noqa: ARG001
) -> str | None:
    return None


def _no_accelerators(
    context: RequestContext,  # noqa: ARG001
    instance: objects.Instance,  # noqa: ARG001
    device_profile: str,  # noqa: ARG001
    spec: objects.RequestSpec,  # noqa: ARG001
    node: str | None,  # noqa: ARG001
) -> list[str]:
    return []


def _keep_accelerators(context: RequestContext, instance: objects.Instance) -> None:
    """None were requested, so none are deleted."""


def _no_quota(context: RequestContext, instances: Sequence[objects.Instance]) -> None:
    """Nothing is counted, so nobody has too much."""


@dataclass(frozen=True)
class BuildHooks:
    """The calls to other services, each replaceable.

    ``renew_attachment`` gives the id of the new attachment of a volume whose old one is gone, or
    None when the old one still exists.  ``request_accelerators`` gives the uuids of accelerator
    requests bound to the node.  ``check_quota`` raises where the new instances, which are in the
    database already, are too many for their project.
    """

    deallocate_networks: Callable[[RequestContext, objects.Instance], None] = _no_networks
    renew_attachment: Callable[
        [RequestContext, objects.Instance, objects.BlockDeviceMapping], str | None
    ] = _attachment_exists
    request_accelerators: Callable[
        [RequestContext, objects.Instance, str, objects.RequestSpec, str | None], list[str]
    ] = _no_accelerators
    check_quota: Callable[[RequestContext, Sequence[objects.Instance]], None] = _no_quota
    delete_accelerators: Callable[[RequestContext, objects.Instance], None] = _keep_accelerators


def device_profile(flavor: objects.Flavor | None) -> str | None:
    """The accelerators that *flavor* asks for, by the name of their profile."""
    extra_specs = flavor.extra_specs if flavor is not None else None
    return (extra_specs or {}).get("accel:device_profile")
