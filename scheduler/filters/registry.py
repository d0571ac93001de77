"""The filters that ship here, and loading of the configured ones.  Reference page filters, 2."""

from typing import Any

from scheduler import errors, plugins
from scheduler.filters.base import BaseHostFilter

#: Modules of the filters, here and in Nova.
MODULES = (
    *("affinity_filter", "aggregate_image_properties_isolation", "aggregate_instance_extra_specs"),
    *("aggregate_multitenancy_isolation", "all_hosts_filter", "availability_zone_filter"),
    *("compute_capabilities_filter", "compute_filter", "core_filter", "disk_filter"),
    *("exact_core_filter", "exact_disk_filter", "exact_ram_filter", "image_props_filter"),
    *("io_ops_filter", "isolated_hosts_filter", "json_filter", "metrics_filter"),
    *("numa_topology_filter", "num_instances_filter", "pci_passthrough_filter", "ram_filter"),
    *("retry_filter", "trusted_filter", "type_filter"),
)
ALL_FILTERS = "nova.scheduler.filters.all_filters"
OPTION = "[filter_scheduler] available_filters"
NAMESPACE = "nova.scheduler.filters"


def all_filters() -> list[type[BaseHostFilter]]:
    return list(plugins.shipped("scheduler.filters", MODULES, BaseHostFilter).values())


def known_paths() -> dict[str, Any]:
    """Nova's dotted paths and what they stand for here (reference page config, section 1.3)."""
    everything = (ALL_FILTERS, f"{NAMESPACE}.standard_filters", "scheduler.filters.all_filters")
    known = {
        **dict.fromkeys(everything, all_filters),
        f"{NAMESPACE}.BaseHostFilter": BaseHostFilter,
    }
    return known | plugins.shipped("scheduler.filters", MODULES, BaseHostFilter)


def load_filters(conf: Any, option: str = "enabled_filters") -> list[BaseHostFilter]:
    """The filters that *option* of ``[filter_scheduler]`` lists, each class instantiated once.

    A name that no available class has may be that of an entry point, or of a class in a file of
    the ``extensions_directory``.
    Raises SchedulerHostFilterNotFound naming every unknown filter, ConfigurationError or
    ClassNotFound for an ``available_filters`` entry that does not load.
    """
    classes = available(conf)
    named_in, directory = f"[filter_scheduler] {option}", conf.filter_scheduler.extensions_directory
    wanted = [name for name in conf.filter_scheduler[option] if name]
    for name in [name for name in wanted if name not in classes]:
        found = plugins.named_class(NAMESPACE, directory, name, BaseHostFilter, named_in)
        if found is not None:
            classes[name] = found
    missing = [name for name in wanted if name not in classes]
    if missing:
        names, named = ", ".join(missing), missing[0].rpartition(".")[2]
        text = errors.SchedulerHostFilterNotFound(filter_name=names).format_message()
        where = f"It is named in {named_in}, but is neither among {OPTION} nor in {directory}"
        near = errors.did_you_mean(named, (*classes, *plugins.entry_point_names(NAMESPACE)))
        raise errors.SchedulerHostFilterNotFound(f"{text} {where}{near}", filter_name=names)
    filters = {name: plugins.instantiate(classes[name], conf) for name in dict.fromkeys(wanted)}
    return [filters[name] for name in wanted]


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
