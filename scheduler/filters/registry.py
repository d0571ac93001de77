"""The filters that ship here: the visible list, and loading of the configured ones.

Reference page filters, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduler import errors, plugins
from scheduler.filters.base import BaseHostFilter
from scheduler.filters.filter_properties import offered

#: Class -> (module here, Nova's module).
SHIPPED: Final[Mapping[str, tuple[str, str]]] = {
    "RamFilter": ("capacity", "ram_filter"),
    "AggregateRamFilter": ("capacity", "ram_filter"),
    "ExactRamFilter": ("capacity", "exact_ram_filter"),
    "DiskFilter": ("capacity", "disk_filter"),
    "AggregateDiskFilter": ("capacity", "disk_filter"),
    "ExactDiskFilter": ("capacity", "exact_disk_filter"),
    "CoreFilter": ("capacity", "core_filter"),
    "AggregateCoreFilter": ("capacity", "core_filter"),
    "ExactCoreFilter": ("capacity", "exact_core_filter"),
    "IoOpsFilter": ("counts", "io_ops_filter"),
    "AggregateIoOpsFilter": ("counts", "io_ops_filter"),
    "NumInstancesFilter": ("counts", "num_instances_filter"),
    "AggregateNumInstancesFilter": ("counts", "num_instances_filter"),
    "ComputeFilter": ("reported", "compute_filter"),
    "ImagePropertiesFilter": ("reported", "image_props_filter"),
    "ComputeCapabilitiesFilter": ("reported", "compute_capabilities_filter"),
    "MetricsFilter": ("reported", "metrics_filter"),
    "AvailabilityZoneFilter": ("aggregates", "availability_zone_filter"),
    "AggregateMultiTenancyIsolation": ("aggregates", "aggregate_multitenancy_isolation"),
    "AggregateImagePropertiesIsolation": ("aggregates", "aggregate_image_properties_isolation"),
    "AggregateInstanceExtraSpecsFilter": ("aggregates", "aggregate_instance_extra_specs"),
    "TypeAffinityFilter": ("aggregates", "type_filter"),
    "AggregateTypeAffinityFilter": ("aggregates", "type_filter"),
    "DifferentHostFilter": ("affinity", "affinity_filter"),
    "SameHostFilter": ("affinity", "affinity_filter"),
    "SimpleCIDRAffinityFilter": ("affinity", "affinity_filter"),
    "ServerGroupAffinityFilter": ("affinity", "affinity_filter"),
    "ServerGroupAntiAffinityFilter": ("affinity", "affinity_filter"),
    "IsolatedHostsFilter": ("affinity", "isolated_hosts_filter"),
    "RetryFilter": ("affinity", "retry_filter"),
    "NUMATopologyFilter": ("cells_and_devices", "numa_topology_filter"),
    "PciPassthroughFilter": ("cells_and_devices", "pci_passthrough_filter"),
    "AllHostsFilter": ("all_hosts_filter", "all_hosts_filter"),
    "JsonFilter": ("json_filter", "json_filter"),
    "TrustedFilter": ("trusted", "trusted_filter"),
}
ALL_FILTERS = "nova.scheduler.filters.all_filters"
OPTION = "[filter_scheduler] available_filters"
NAMESPACE = "nova.scheduler.filters"


def all_filters() -> list[type[BaseHostFilter]]:
    """Every filter class that ships here."""
    return list(plugins.shipped("filters", SHIPPED).values())


def known_paths() -> dict[str, Any]:
    """Nova's dotted paths and what they stand for here (reference page config, section 1.3)."""
    everything = (ALL_FILTERS, "nova.scheduler.filters.standard_filters")
    return {
        **dict.fromkeys((*everything, "scheduler.filters.all_filters"), all_filters),
        "nova.scheduler.filters.BaseHostFilter": BaseHostFilter,
        **plugins.shipped("filters", SHIPPED),
    }


def load_filters(conf: Any, option: str = "enabled_filters") -> list[BaseHostFilter]:
    """The filters that *option* of ``[filter_scheduler]`` lists, each class instantiated once.

    A name that no available class has may be that of an entry point.
    Raises SchedulerHostFilterNotFound naming every unknown filter, ConfigurationError or
    ClassNotFound for an ``available_filters`` entry that does not load.
    """
    classes = available(conf)
    named_in = f"[filter_scheduler] {option}"
    wanted = [name for name in conf.filter_scheduler[option] if name]
    for name in [name for name in wanted if name not in classes]:
        found = plugins.entry_point_class(NAMESPACE, name, BaseHostFilter, named_in)
        if found is not None:
            classes[name] = found
    missing = [name for name in wanted if name not in classes]
    if missing:
        names = ", ".join(missing)
        text = errors.SchedulerHostFilterNotFound(filter_name=names).format_message()
        where = f"It is named in {named_in}, but not among {OPTION}."
        raise errors.SchedulerHostFilterNotFound(f"{text} {where}", filter_name=names)
    filters = {name: plugins.instantiate(classes[name], conf) for name in dict.fromkeys(wanted)}
    return [offered(filters[name]) for name in wanted]


def available(conf: Any) -> dict[str, type[BaseHostFilter]]:
    """By name the filter classes that ``available_filters`` lists; raises as ``load_filters``."""
    known = known_paths()
    classes: dict[str, type[BaseHostFilter]] = {}
    for path in conf.filter_scheduler.available_filters:
        for cls in plugins.classes_at(path, BaseHostFilter, known, OPTION):
            classes[cls.__name__] = cls
    return classes


def names_available(conf: Any) -> set[str]:
    """Names for the option: those of available classes and of entry points."""
    return {*available(conf), *plugins.entry_point_names(NAMESPACE)}
