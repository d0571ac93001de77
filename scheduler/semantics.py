"""Where Newton and today's releases decide differently, each difference as one named entry.

``[scheduler] semantics`` chooses one of the two.  Whoever decides gets the chosen ``Semantics``
and uses the entry that concerns it; nobody asks which of the two it is.  What each entry means is
its description below, and the compatibility page repeats those descriptions line by line.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oslo_utils import versionutils

from scheduler import errors, numa

_TENANT_KEY = "filter_tenant_id"
_VERSION_FIELD = "image.properties.img_hv_requested_version"
#: The versions that Newton could read: two or three numbers, perhaps of an alpha or a beta.
_NEWTON_VERSION = re.compile(r"\d+\.\d+(\.\d+)?([ab]\d+)?")
_CONDITION = re.compile(r"\s*(?:<=|>=|!=|==|<|>)\s*(?P<version>\S+)\s*")


@dataclass(frozen=True, slots=True)
class Description:
    """What an entry is about, and what Newton and today's releases do."""

    subject: str
    newton: str
    current: str


def _entry(subject: str, *, newton: str, current: str) -> Any:
    description = Description(subject, newton, current)
    return dataclasses.field(metadata={"description": description})


Bounds = tuple[float, float]
Ratios = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Semantics:
    """The entries: values, or functions of what they decide on."""

    bounds: Callable[[Any, float, float], Bounds] = _entry(
        "Bounds that weights are normalised with",
        newton="the lowest and highest raw value a weigher has ever seen in its process, requests "
        "that failed apart; raw values below a declared minimum widen the range",
        current="those of the candidates at hand; raw values outside a declared bound count as "
        "the bound",
    )
    multiplier_per_aggregate: bool = _entry(
        "Aggregate metadata `<name>_weight_multiplier`",
        newton="means nothing",
        current="overrides the option for the hosts of the aggregate; the smallest value counts",
    )
    least_soft_multiplier: float = _entry(
        "`soft_affinity_weight_multiplier` and `soft_anti_affinity_weight_multiplier` below 0",
        newton="taken as they are, with a warning: the opposite policy",
        current="refused: 0 is used instead, with a warning",
    )
    newer_weighers: frozenset[str] = _entry(
        "What `nova.scheduler.weights.all_weighers` stands for",
        newton="Metrics, soft affinity and anti-affinity, RAM, Disk and IoOps; newer ones run when "
        "`weight_classes` names them",
        current="every weigher",
    )
    keeps_ranking: bool = _entry(
        "Order in which the hosts left stand for the next server of the same request, which "
        "decides between equal weights",
        newton="as the filters left them",
        current="the chosen host first, then the others by weight",
    )
    destination_node: Callable[[str | None, str | None], bool] = _entry(
        "Requested destination that names a host and no node",
        newton="matches nothing",
        current="matches every node of the host",
    )
    last_heartbeat: Callable[[Any], datetime.datetime | None] = _entry(
        "Liveness of a service whose `last_seen_up` is null",
        newton="judged by `updated_at`, then by `created_at`",
        current="judged by `created_at`",
    )
    fallback_ratios: Callable[[Any], Ratios] = _entry(
        "Allocation ratio that is NULL or 0.0 in the host's row and in the plain option",
        newton="16.0 for processors, 1.5 for memory, 1.0 for disk",
        current="the option `initial_*_allocation_ratio`: 4.0, 1.0, 1.0",
    )
    is_tenant_key: Callable[[str], bool] = _entry(
        "AggregateMultiTenancyIsolation",
        newton="the metadata key `filter_tenant_id` only",
        current="every metadata key that begins with `filter_tenant_id`",
    )
    room_for_member: Callable[[Any, Any], Any] = _entry(
        "ServerGroupAntiAffinityFilter",
        newton="rejects the hosts named in the group's `hosts`",
        current="counts the group's `members` on the host, up to the rule `max_server_per_host`",
    )
    version_test: Callable[[str], Callable[[int], bool]] = _entry(
        "`img_hv_requested_version`, or a hypervisor's version, of fewer than two or more than "
        "three numbers",
        newton="fails the request",
        current="is compared",
    )
    image_id: Callable[[Any], str | None] = _entry(
        "IsolatedHostsFilter and an image without id",
        newton="fails the request",
        current="the image counts as one that is not isolated",
    )
    draw: Callable[[random.Random, list[str], int], list[str]] = _entry(
        "Chance driver and a request for several servers",
        newton="a host is drawn for each; two servers may share one",
        current="different hosts are drawn while there are enough, else as in Newton",
    )
    numa: numa.NumaSemantics = _entry(
        "NUMA cells and PCI devices",
        newton="the table below",
        current="the table below",
    )
    rebuild_checks_cells: bool = _entry(
        "NUMATopologyFilter and a server that is rebuilt where it is",
        newton="decides",
        current="is not asked",
    )


# --- today's releases ------------------------------------------------------------------------


def _bounds_at_hand(weigher: Any, lowest: float, highest: float) -> Bounds:
    low, high = weigher.minval, weigher.maxval
    if low is None:
        low = lowest if high is None else min(lowest, high)
    if high is None:
        high = max(highest, low)
    return float(low), float(high)


def _any_node_if_none(wanted: str | None, node: str | None) -> bool:
    return not wanted or wanted == node


def _seen_or_created(service: Any) -> datetime.datetime | None:
    return service.last_seen_up or service.created_at


def _initial_ratios(conf: Any) -> Ratios:
    return (
        conf.initial_cpu_allocation_ratio,
        conf.initial_ram_allocation_ratio,
        conf.initial_disk_allocation_ratio,
    )


def _begins_as_tenant_key(key: str) -> bool:
    return key.startswith(_TENANT_KEY)


def _fewer_members_than_allowed(hosts: Any, request: Any) -> Any:
    group = request.instance_group
    most = group.rules.get("max_server_per_host", 1)
    own = hosts.count_instances([request.instance_uuid]) > 0
    return own | (hosts.count_instances(group.members or ()) < most)


def _any_version(requirement: str) -> Callable[[int], bool]:
    try:
        predicate = versionutils.VersionPredicate(requirement)
    except ValueError as error:
        raise errors.InvalidRequest(field=_VERSION_FIELD, reason=str(error)) from error
    text_of = versionutils.convert_version_to_str
    return lambda number: number <= 0 or predicate.satisfied_by(text_of(number))


def _id_if_any(image: Any) -> str | None:
    return None if image is None else image.id


def _draw_different_hosts(rng: random.Random, hosts: list[str], count: int) -> list[str]:
    return rng.sample(hosts, count) if count <= len(hosts) else _draw_each(rng, hosts, count)


def _draw_each(rng: random.Random, hosts: list[str], count: int) -> list[str]:
    return [rng.choice(hosts) for _ in range(count)]


CURRENT = Semantics(
    bounds=_bounds_at_hand,
    multiplier_per_aggregate=True,
    least_soft_multiplier=0.0,
    newer_weighers=frozenset(),
    keeps_ranking=True,
    destination_node=_any_node_if_none,
    last_heartbeat=_seen_or_created,
    fallback_ratios=_initial_ratios,
    is_tenant_key=_begins_as_tenant_key,
    room_for_member=_fewer_members_than_allowed,
    version_test=_any_version,
    image_id=_id_if_any,
    draw=_draw_different_hosts,
    numa=numa.CURRENT,
    rebuild_checks_cells=False,
)


# --- Newton ----------------------------------------------------------------------------------


def _bounds_ever_seen(weigher: Any, lowest: float, highest: float) -> Bounds:
    """Widen the bounds that *weigher* itself carries, which is its memory."""
    weigher.minval = lowest if weigher.minval is None else min(weigher.minval, lowest)
    weigher.maxval = highest if weigher.maxval is None else max(weigher.maxval, highest)
    return float(weigher.minval), float(weigher.maxval)


def _same_node(wanted: str | None, node: str | None) -> bool:
    return wanted == node


def _seen_updated_or_created(service: Any) -> datetime.datetime | None:
    return service.last_seen_up or service.updated_at or service.created_at


def _newton_ratios(conf: Any) -> Ratios:
    del conf
    return 16.0, 1.5, 1.0


def _is_the_tenant_key(key: str) -> bool:
    return key == _TENANT_KEY


def _not_a_host_of_the_group(hosts: Any, request: Any) -> Any:
    own = hosts.count_instances([request.instance_uuid]) > 0
    return own | ~hosts.named(request.instance_group.hosts or ())


def _strict_version(requirement: str) -> Callable[[int], bool]:
    satisfied = _any_version(requirement)
    for condition in requirement.split(","):
        found = _CONDITION.fullmatch(condition)
        _require_strict(found["version"] if found else condition)

    def test(number: int) -> bool:
        if number > 0:
            _require_strict(versionutils.convert_version_to_str(number))
        return satisfied(number)

    return test


def _require_strict(version: str) -> None:
    if not _NEWTON_VERSION.fullmatch(version):
        reason = f"{version!r} is not a version of two or three numbers"
        raise errors.InvalidRequest(field=_VERSION_FIELD, reason=reason)


def _id_needed(image: Any) -> str | None:
    if image is not None and image.id is None:
        raise errors.InvalidRequest(field="image.id", reason="the image has none")
    return _id_if_any(image)


NEWTON = Semantics(
    bounds=_bounds_ever_seen,
    multiplier_per_aggregate=False,
    least_soft_multiplier=-math.inf,
    newer_weighers=frozenset(
        {
            "BuildFailureWeigher",
            "CPUWeigher",
            "CrossCellWeigher",
            "HypervisorVersionWeigher",
            "ImagePropertiesWeigher",
            "NumInstancesWeigher",
            "PCIWeigher",
        }
    ),
    keeps_ranking=False,
    destination_node=_same_node,
    last_heartbeat=_seen_updated_or_created,
    fallback_ratios=_newton_ratios,
    is_tenant_key=_is_the_tenant_key,
    room_for_member=_not_a_host_of_the_group,
    version_test=_strict_version,
    image_id=_id_needed,
    draw=_draw_each,
    numa=numa.NEWTON,
    rebuild_checks_cells=True,
)

CHOICES = {"current": CURRENT, "newton": NEWTON}


def of(conf: Any) -> Semantics:
    """What ``[scheduler] semantics`` chooses."""
    return CHOICES[conf.scheduler.semantics]


def descriptions() -> dict[str, Description]:
    """Every entry's name and description, in order."""
    return {each.name: each.metadata["description"] for each in dataclasses.fields(Semantics)}
