"""What options and the fleet's aggregates add to a request before Placement is asked.

Reference pages config, section 2, and scheduling, section 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.placement.demand import Group

LOG = logging.getLogger(__name__)

ZONE_KEY: Final = "availability_zone"
TENANT_KEY: Final = "filter_tenant_id"
NO_TENANT_HOSTS: Final = "No hosts available for tenant"
_TRAIT_KEY, _REQUIRED = "trait:", "required"


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Which restrictions are on; the names are those of the options of ``[scheduler]``."""

    zones: bool
    tenants: bool
    tenants_need_one: bool
    image_types: bool
    isolated: bool

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Restrictions:
        """As the options say."""
        group = conf.scheduler
        return cls(
            zones=group.query_placement_for_availability_zone,
            tenants=group.limit_tenants_to_placement_aggregate,
            tenants_need_one=group.placement_aggregate_required_for_tenants,
            image_types=group.query_placement_for_image_type_support,
            isolated=group.enable_isolated_aggregate_filtering,
        )

    def apply(self, spec: Any, own: Group, aggregates: Sequence[Any]) -> None:
        """Restrict *own*, the group without a suffix; raises NoValidHost for tenants."""
        if self.zones and spec.availability_zone:
            _require(own, _of_zone(aggregates, spec.availability_zone))
        if self.tenants:
            self._restrict_tenant(spec, own, aggregates)
        if self.image_types:
            _require_image_type(spec, own)
        if self.isolated:
            _forbid_isolated(own, aggregates)

    def _restrict_tenant(self, spec: Any, own: Group, aggregates: Iterable[Any]) -> None:
        found = [each.uuid for each in aggregates if _is_for(each, spec.project_id)]
        if not found and self.tenants_need_one:
            LOG.warning("Tenant %s has no available aggregates", spec.project_id)
            raise errors.NoValidHost(reason=f"Scheduling failed: {NO_TENANT_HOSTS}")
        _require(own, found)


def _require(own: Group, uuids: list[str]) -> None:
    if uuids:
        own.aggregates = [*own.aggregates, uuids]


def _of_zone(aggregates: Iterable[Any], zone: str) -> list[str]:
    """The aggregates that make up *zone*; none for the zone of hosts without one."""
    return [
        each.uuid
        for each in aggregates
        if zone in [name.strip() for name in (each.metadata or {}).get(ZONE_KEY, "").split(",")]
    ]


def _is_for(aggregate: Any, project_id: str | None) -> bool:
    return any(
        key.startswith(TENANT_KEY) and value == project_id
        for key, value in (aggregate.metadata or {}).items()
    )


def _require_image_type(spec: Any, own: Group) -> None:
    disk_format = getattr(spec.image, "disk_format", None)
    if disk_format:
        trait = f"COMPUTE_IMAGE_TYPE_{disk_format.upper()}"
        own.required_traits = {*own.required_traits, trait}


def _forbid_isolated(own: Group, aggregates: Iterable[Any]) -> None:
    forbidden = {
        each.uuid for each in aggregates if not _required_traits(each) <= set(own.required_traits)
    }
    own.forbidden_aggregates = {*own.forbidden_aggregates, *forbidden}


def _required_traits(aggregate: Any) -> set[str]:
    return {
        key.removeprefix(_TRAIT_KEY)
        for key, value in (aggregate.metadata or {}).items()
        if key.startswith(_TRAIT_KEY) and value == _REQUIRED
    }
