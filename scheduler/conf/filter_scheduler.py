"""``[filter_scheduler]``: which filters and weighers run, and their options.

Reference page config, sections 3 and 4.
"""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration
from scheduler.objects.enums import ARCHITECTURES

GROUP = cfg.OptGroup(
    "filter_scheduler",
    title="Filter scheduler",
    help="Filters, weighers and the choice among the best hosts.",
)

# Later releases of Nova leave out what Placement does for them; it need not be there here.
DEFAULT_FILTERS = [
    "RetryFilter",
    "AvailabilityZoneFilter",
    "RamFilter",
    "DiskFilter",
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
]

BARE_METAL_FILTERS = [
    "RetryFilter",
    "AvailabilityZoneFilter",
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ExactRamFilter",
    "ExactDiskFilter",
    "ExactCoreFilter",
]


def _formerly(name: str) -> list[cfg.DeprecatedOpt]:
    return [cfg.DeprecatedOpt(name, group="DEFAULT")]


def _multiplier(
    name: str, default: float, about: str, *, in_newton: bool = False, least: float | None = None
) -> cfg.Opt:
    return cfg.FloatOpt(
        name,
        default=default,
        min=least,
        deprecated_opts=_formerly(name) if in_newton else [],
        help=f"{about} The normalised weight (0.0 to 1.0) is multiplied by this; a negative "
        "value turns the preference round, 0.0 switches the weigher off.",
    )


SELECTION = [
    cfg.MultiStrOpt(
        "available_filters",
        default=["nova.scheduler.filters.all_filters"],
        deprecated_opts=_formerly("scheduler_available_filters"),
        help="Filters that may be enabled: the dotted path of a class, or of a function that "
        "returns classes. May be given several times. `nova.scheduler.filters.all_filters` "
        "stands for every filter that comes with the scheduler; setting this option replaces the "
        "default, so give that line too when adding a filter of your own.",
    ),
    cfg.ListOpt(
        "enabled_filters",
        default=DEFAULT_FILTERS,
        deprecated_opts=_formerly("scheduler_default_filters"),
        help="Class names of the filters that run, in this order. A name that is not among "
        "available_filters may be an entry point of the namespace `nova.scheduler.filters`; any "
        "other stops the start.",
    ),
    cfg.BoolOpt(
        "use_baremetal_filters",
        default=False,
        deprecated_opts=_formerly("scheduler_use_baremetal_filters"),
        help="Whether baremetal_enabled_filters run instead of enabled_filters, if "
        "`[scheduler] host_manager` is `ironic_host_manager`.",
    ),
    cfg.ListOpt(
        "baremetal_enabled_filters",
        default=BARE_METAL_FILTERS,
        deprecated_opts=_formerly("baremetal_scheduler_default_filters"),
        help="Class names of the filters that run for bare metal, in this order.",
    ),
    cfg.ListOpt(
        "weight_classes",
        default=["nova.scheduler.weights.all_weighers"],
        deprecated_opts=_formerly("scheduler_weight_classes"),
        help="Weighers that run: dotted paths of classes, or of functions that return classes, or "
        "entry points of the namespace `nova.scheduler.weights`. "
        "`nova.scheduler.weights.all_weighers` stands for every weigher that comes with the "
        "scheduler.",
    ),
    cfg.IntOpt(
        "host_subset_size",
        default=1,
        deprecated_opts=_formerly("scheduler_host_subset_size"),
        help="The host is drawn at random among this many best ones; 1 or less takes the "
        "best. More than 1 keeps several schedulers from choosing the same host.",
    ),
    cfg.BoolOpt(
        "shuffle_best_same_weighed_hosts",
        default=False,
        help="Whether hosts that share the best weight are shuffled before one is chosen.",
    ),
    cfg.BoolOpt(
        "track_instance_changes",
        default=True,
        deprecated_opts=_formerly("scheduler_tracks_instance_changes"),
        help="Whether the instances of each host are kept up to date from the messages of the "
        "compute services. When false they are read from the database.",
    ),
]

FILTERS = [
    cfg.IntOpt(
        "max_io_ops_per_host",
        default=8,
        deprecated_opts=_formerly("max_io_ops_per_host"),
        help="IoOpsFilter: a host with this many servers being built, resized, snapshotted, "
        "migrated, rescued or unshelved gets no further one. With a value below 1 every host is "
        "full. AggregateIoOpsFilter: the same, unless an aggregate of the host has metadata of "
        "this name.",
    ),
    cfg.IntOpt(
        "max_instances_per_host",
        default=50,
        deprecated_opts=_formerly("max_instances_per_host"),
        help="NumInstancesFilter: a host with this many servers gets no further one. With a "
        "value below 1 every host is full. AggregateNumInstancesFilter: the same, unless an "
        "aggregate of the host has metadata of this name.",
    ),
    cfg.StrOpt(
        "image_properties_default_architecture",
        choices=ARCHITECTURES,
        help="ImagePropertiesFilter: architecture of images that name none. Unset: they fit "
        "every host.",
    ),
    cfg.ListOpt(
        "isolated_images",
        default=[],
        deprecated_opts=_formerly("isolated_images"),
        help="IsolatedHostsFilter: ids of the images that only isolated_hosts may run.",
    ),
    cfg.ListOpt(
        "isolated_hosts",
        default=[],
        deprecated_opts=_formerly("isolated_hosts"),
        help="IsolatedHostsFilter: names of the hosts that may run isolated_images.",
    ),
    cfg.BoolOpt(
        "restrict_isolated_hosts_to_isolated_images",
        default=True,
        deprecated_opts=_formerly("restrict_isolated_hosts_to_isolated_images"),
        help="IsolatedHostsFilter: whether isolated_hosts run isolated_images and nothing else.",
    ),
    cfg.StrOpt(
        "aggregate_image_properties_isolation_namespace",
        deprecated_opts=_formerly("aggregate_image_properties_isolation_namespace"),
        help="AggregateImagePropertiesIsolation: only aggregate metadata whose key begins with "
        "this and the separator counts. The whole key must be the name of an image property. "
        "Unset: all metadata counts.",
    ),
    cfg.StrOpt(
        "aggregate_image_properties_isolation_separator",
        default=".",
        deprecated_opts=_formerly("aggregate_image_properties_isolation_separator"),
        help="AggregateImagePropertiesIsolation: what stands between the namespace and the rest "
        "of the key.",
    ),
]

WEIGHERS = [
    _multiplier(
        "ram_weight_multiplier",
        1.0,
        "RAMWeigher: prefers hosts with more free memory.",
        in_newton=True,
    ),
    _multiplier(
        "disk_weight_multiplier",
        1.0,
        "DiskWeigher: prefers hosts with more free disk.",
        in_newton=True,
    ),
    _multiplier(
        "cpu_weight_multiplier",
        1.0,
        "CPUWeigher: prefers hosts with more free processors, overcommit included.",
    ),
    _multiplier(
        "io_ops_weight_multiplier",
        -1.0,
        "IoOpsWeigher: the default, being negative, prefers hosts with fewer servers in the "
        "middle of an operation.",
        in_newton=True,
    ),
    _multiplier(
        "soft_affinity_weight_multiplier",
        1.0,
        "ServerGroupSoftAffinityWeigher: prefers hosts with more servers of the request's group. "
        "Below 0 only with `[scheduler] semantics = newton`.",
        in_newton=True,
    ),
    _multiplier(
        "soft_anti_affinity_weight_multiplier",
        1.0,
        "ServerGroupSoftAntiAffinityWeigher: prefers hosts with fewer servers of the request's "
        "group. Below 0 only with `[scheduler] semantics = newton`.",
        in_newton=True,
    ),
    _multiplier(
        "pci_weight_multiplier",
        1.0,
        "PCIWeigher: keeps hosts with free PCI devices for the servers that need them.",
        least=0.0,
    ),
    _multiplier(
        "build_failure_weight_multiplier",
        1_000_000.0,
        "BuildFailureWeigher: avoids hosts whose latest builds failed.",
    ),
    _multiplier(
        "cross_cell_move_weight_multiplier",
        1_000_000.0,
        "CrossCellWeigher: prefers hosts of the server's own cell for a move that may leave it.",
    ),
    _multiplier(
        "hypervisor_version_weight_multiplier",
        1.0,
        "HypervisorVersionWeigher: prefers hosts with a newer hypervisor.",
    ),
    _multiplier(
        "num_instances_weight_multiplier",
        0.0,
        "NumInstancesWeigher: prefers hosts with more servers.",
    ),
    _multiplier(
        "image_props_weight_multiplier",
        0.0,
        "ImagePropertiesWeigher: prefers hosts whose servers have images with the same "
        "properties as the request's.",
    ),
    cfg.ListOpt(
        "image_props_weight_setting",
        default=[],
        help="ImagePropertiesWeigher: what a shared property counts, as `name=ratio` items; a "
        "property that is not named counts nothing. Empty: every property counts 1.",
    ),
]

OPTIONS = [*SELECTION, *FILTERS, *WEIGHERS]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
