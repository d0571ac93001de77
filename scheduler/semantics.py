"""Differences between the decisions of Newton and today's releases, each a named entry.

``[scheduler] semantics`` chooses one of the two.  Whoever decides gets the chosen ``Semantics``
and uses the entry that concerns it; nobody asks which of the two it is.  The compatibility page
says by name what each entry means.
"""

import datetime
import math
import operator
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from oslo_utils import versionutils

from scheduler import errors, numa

_TENANT_KEY = "filter_tenant_id"
_VERSION_FIELD = "image.properties.img_hv_requested_version"
#: The versions that Newton could read: two or three numbers, perhaps of an alpha or a beta.
_NEWTON_VERSION = re.compile(r"\d+\.\d+(\.\d+)?([ab]\d+)?")
_CONDITION = re.compile(r"\s*(?:<=|>=|!=|==|<|>)\s*(?P<version>\S+)\s*")


class Ratios(NamedTuple):
    """Allocation ratios for rows that hold none (NULL or 0.0)."""

    cpu: float
    ram: float
    disk: float

    @classmethod
    def from_conf(cls, conf: Any) -> Self:
        """The plain option if it is set and not 0, else what the semantics fall back to."""
        fallback = from_conf(conf).fallback_ratios(conf)._asdict()
        plain = {name: conf[f"{name}_allocation_ratio"] for name in fallback}
        return cls(**{name: plain[name] or ratio for name, ratio in fallback.items()})


def _fewer_members_than_allowed(hosts: Any, request: Any) -> Any:
    group = request.instance_group
    most = group.rules.get("max_server_per_host", 1)
    own = hosts.count_instances([request.instance_uuid]) > 0
    return own | (hosts.count_instances(group.members or ()) < most)


def _any_version(requirement: str) -> Callable[[int], bool]:
    with errors.as_invalid(_VERSION_FIELD, ValueError):
        predicate = versionutils.VersionPredicate(requirement)
    text_of = versionutils.convert_version_to_str
    return lambda number: number <= 0 or predicate.satisfied_by(text_of(number))


def _draw_different_hosts(rng: random.Random, hosts: list[str], count: int) -> list[str]:
    return rng.sample(hosts, count) if count <= len(hosts) else _draw_each(rng, hosts, count)


def _draw_each(rng: random.Random, hosts: list[str], count: int) -> list[str]:
    return [rng.choice(hosts) for _ in range(count)]


@dataclass(frozen=True, slots=True)
class Semantics:
    """The entries, by default today's: values, or functions of what they decide on."""

    #: Weighers carry the lowest and highest raw value ever seen, as bounds.
    remembers_bounds: bool = False
    #: Aggregate metadata ``<name>_weight_multiplier`` overrides the option.
    multiplier_per_aggregate: bool = True
    #: The least multiplier of soft affinity and soft anti-affinity.
    least_soft_multiplier: float = 0.0
    #: Weighers that ``all_weighers`` leaves out.
    newer_weighers: frozenset[str] = frozenset()
    #: The next server of a request finds the hosts in the order of their weights.
    keeps_ranking: bool = True
    #: (node of a requested destination, node of a host) -> they match.
    destination_node: Callable[[str | None, str | None], bool] = lambda wanted, node: (
        not wanted or wanted == node
    )
    #: Service record -> time of its last heartbeat.
    last_heartbeat: Callable[[Any], datetime.datetime | None] = lambda service: (
        service.last_seen_up or service.created_at
    )
    #: Configuration -> ratios of CPU, memory and disk that nobody set.
    fallback_ratios: Callable[[Any], Ratios] = lambda conf: Ratios(
        *(conf[f"initial_{each}_allocation_ratio"] for each in Ratios._fields)
    )
    #: Metadata key -> AggregateMultiTenancyIsolation reads it.
    is_tenant_key: Callable[[str], bool] = lambda key: key.startswith(_TENANT_KEY)
    #: (hosts, request) -> mask of the hosts that ServerGroupAntiAffinityFilter passes.
    room_for_member: Callable[[Any, Any], Any] = _fewer_members_than_allowed
    #: ``img_hv_requested_version`` -> test of a hypervisor's version number.
    version_test: Callable[[str], Callable[[int], bool]] = _any_version
    #: Image -> the id that IsolatedHostsFilter compares.
    image_id: Callable[[Any], str | None] = lambda image: None if image is None else image.id
    #: (random source, hosts, number of servers) -> hosts that the chance driver draws.
    draw: Callable[[random.Random, list[str], int], list[str]] = _draw_different_hosts
    #: NUMA cells and PCI devices.
    numa: "numa.NumaSemantics" = numa.CURRENT
    #: NUMATopologyFilter decides on a server that is rebuilt where it is.
    rebuild_checks_cells: bool = False


CURRENT = Semantics()


# --- Newton ----------------------------------------------------------------------------------


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
    return None if image is None else image.id


_NEWER_WEIGHERS = frozenset(
    f"{name}Weigher"
    for name in ("BuildFailure", "CPU", "CrossCell", "HypervisorVersion", "ImageProperties")
    + ("NumInstances", "PCI")
)
NEWTON = Semantics(
    remembers_bounds=True,
    multiplier_per_aggregate=False,
    least_soft_multiplier=-math.inf,
    newer_weighers=_NEWER_WEIGHERS,
    keeps_ranking=False,
    destination_node=operator.eq,
    last_heartbeat=lambda service: service.last_seen_up or service.updated_at or service.created_at,
    fallback_ratios=lambda _conf: Ratios(16.0, 1.5, 1.0),
    is_tenant_key=lambda key: key == _TENANT_KEY,
    room_for_member=_not_a_host_of_the_group,
    version_test=_strict_version,
    image_id=_id_needed,
    draw=_draw_each,
    numa=numa.NEWTON,
    rebuild_checks_cells=True,
)

CHOICES = {"current": CURRENT, "newton": NEWTON}


def from_conf(conf: Any) -> Semantics:
    return CHOICES[conf.scheduler.semantics]
