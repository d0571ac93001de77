"""Filters by the metadata of a host's aggregates.  Reference page filters, section 6.

A zone is ``availability_zone`` metadata (6.3).  Images without a property are kept away from
nowhere (6.12).  Extra specs are asked of the aggregates by the operators of section 5.4 (6.13).
Aggregates for certain projects keep other projects out, and not those in (6.14).  Flavors can be
kept together with and without aggregates (6.15 and 6.16).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oslo_log import log as logging

from scheduler import errors, objects, semantics
from scheduler.filters import extra_specs_ops
from scheduler.filters.base import Condition, HostFilter, Reason, extra_specs_of
from scheduler.filters.host_attributes import Verdict
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

LOG = logging.getLogger(__name__)

OTHER_ZONE = Reason("availability_zone.other", "the host is not in the availability zone asked for")
OTHER_PROJECT = Reason("multitenancy.other", "the host's aggregates are for other projects")
OTHER_IMAGES = Reason("image_isolation.other", "the host's aggregates are for other images")
MISSING = Reason("aggregate_specs.missing", "no aggregate of the host has what an extra spec names")
REFUSED = Reason("aggregate_specs.refused", "no aggregate of the host satisfies an extra spec")
OTHER_TYPE = Reason("type.other", "the host runs servers of another flavor")
NOT_NAMED = Reason("aggregate_type.not_named", "the host's aggregates are for other flavors")

_SCOPE = "aggregate_instance_extra_specs:"


class AvailabilityZoneFilter(HostFilter):
    """Passes hosts of the requested zone, compared exactly; every host if none is requested."""

    run_filter_once_per_request = True
    reasons = (OTHER_ZONE,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.default_zone = conf.default_availability_zone

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """The zones of the host's aggregates, or else the default zone, hold the one wanted."""
        wanted = request.availability_zone
        if not wanted:
            return

        def in_zone(aggregates: list[Any]) -> bool:
            zones = aggregate_metadata.split_values(aggregates, "availability_zone")
            return wanted in (zones or {self.default_zone})

        yield OTHER_ZONE, hosts.per_document("aggregates", in_zone, key=(self, wanted))


class AggregateMultiTenancyIsolation(HostFilter):
    """Passes hosts whose aggregates name the project, or none, as ``filter_tenant_id``."""

    run_filter_once_per_request = True
    reasons = (OTHER_PROJECT,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.is_tenant_key = semantics.from_conf(conf).is_tenant_key

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """The project is one of those listed, separated by commas."""

        def admits(aggregates: list[Any]) -> bool:
            keys = filter(self.is_tenant_key, aggregate_metadata.keys(aggregates))
            allowed = set[str]().union(
                *(aggregate_metadata.split_values(aggregates, key) for key in keys)
            )
            return not allowed or request.project_id in allowed

        admitted = hosts.per_document("aggregates", admits, key=(self, request.project_id))
        yield OTHER_PROJECT, admitted


class AggregateImagePropertiesIsolation(HostFilter):
    """Passes hosts whose aggregates' metadata does not contradict a property of the image."""

    run_filter_once_per_request = True
    RUN_ON_REBUILD = True
    reasons = (OTHER_IMAGES,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        options = conf.filter_scheduler
        namespace = options.aggregate_image_properties_isolation_namespace
        separator = options.aggregate_image_properties_isolation_separator
        self.prefix = f"{namespace}{separator or ''}" if namespace else ""
        self._told: set[str] = set()

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Every key that is a property the image has lists, separated by commas, its value."""
        if request.image is not None:
            properties = request.image.properties
            key = self, repr(properties.set_fields())
            admitted = hosts.per_document(
                "aggregates", lambda each: self._admits(each, properties), key=key
            )
            yield OTHER_IMAGES, admitted

    def _admits(self, aggregates: list[Any], properties: objects.ImageMetaProps) -> bool:
        for key in aggregate_metadata.keys(aggregates):
            if not key.startswith(self.prefix):
                continue
            try:
                value = properties.get(key)
            except AttributeError:
                self._tell(key)
                continue
            if value and str(value) not in aggregate_metadata.split_values(aggregates, key):
                return False
        return True

    def _tell(self, key: str) -> None:
        """Warn once of each key that can never matter."""
        if key not in self._told:
            self._told.add(key)
            LOG.warning(
                "An aggregate has a metadata key '%s' that is not present in the image metadata.",
                key,
            )


class AggregateInstanceExtraSpecsFilter(HostFilter):
    """Passes hosts whose aggregates satisfy every extra spec that is unscoped or has our scope."""

    run_filter_once_per_request = True
    reasons = (MISSING, REFUSED)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """One value of each key named satisfies its requirement, on whichever aggregate.

        Raises InvalidRequest where an operator cannot compare what it is given.
        """
        if demands := demands_on_aggregates(request):
            key = "extra specs", tuple(demands.items())
            verdicts = hosts.per_document(
                "aggregates", lambda each: _judge(each, demands), np.int8, key=key
            )
            yield MISSING, verdicts != Verdict.MISSING
            yield REFUSED, verdicts != Verdict.REFUSED


def demands_on_aggregates(request: Any) -> dict[str, str]:
    """Requirements by metadata key: the extra specs that are unscoped or have our scope."""
    return {
        key.removeprefix(_SCOPE): requirement
        for key, requirement in extra_specs_of(request).items()
        if ":" not in key or key.startswith(_SCOPE)
    }


def _judge(aggregates: list[Any], demands: dict[str, str]) -> Verdict:
    for name, requirement in demands.items():
        values = aggregate_metadata.split_values(aggregates, name)
        if not values:
            return Verdict.MISSING
        try:
            met = any(extra_specs_ops.match(value, requirement) for value in sorted(values))
        except ValueError as error:
            field = f"flavor.extra_specs.{name}"
            raise errors.InvalidRequest(field=field, reason=str(error)) from error
        if not met:
            return Verdict.REFUSED
    return Verdict.MET


class TypeAffinityFilter(HostFilter):
    """Passes hosts that run nothing but servers of the requested flavor, by its number."""

    reasons = (OTHER_TYPE,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """No server of another flavor, nor of one that is not known."""
        wanted = request.flavor.id if request.flavor is not None else None
        others = [
            host
            for host, instances in hosts.table.instances.items()
            if any(each.instance_type_id != wanted for each in instances.values())
        ]
        yield OTHER_TYPE, ~hosts.running_on(others) if others else hosts.everything(True)


class AggregateTypeAffinityFilter(HostFilter):
    """Passes hosts whose aggregates name the flavor, or none, as ``instance_type``."""

    run_filter_once_per_request = True
    reasons = (NOT_NAMED,)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """The flavor's name is one of those listed, separated by commas."""
        wanted = request.flavor.name if request.flavor is not None else None

        def allows(aggregates: list[Any]) -> bool:
            names = aggregate_metadata.split_values(aggregates, "instance_type")
            return not names or wanted in names

        yield NOT_NAMED, hosts.per_document("aggregates", allows, key=("flavor", wanted))
