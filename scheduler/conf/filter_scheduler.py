"""``[filter_scheduler]``, ``[metrics]``, ``[trusted_computing]`` (page config, 3 and 4)."""

import contextlib
from collections.abc import Iterable

from oslo_config import cfg
from oslo_log import log as logging

from scheduler.objects.enums import ARCHITECTURES

LOG = logging.getLogger(__name__)

GROUP = cfg.OptGroup(
    "filter_scheduler",
    title="Filter scheduler",
    help="Filters, weighers and the choice among the best hosts.",
)

# Today's Nova leaves to Placement what Newton's first four filters do.
PLACEMENT_FILTERS = [
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
]
DEFAULT_FILTERS = [
    "RetryFilter",
    "AvailabilityZoneFilter",
    "RamFilter",
    "DiskFilter",
    *PLACEMENT_FILTERS,
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
#: Multipliers that Newton had, in [DEFAULT].
_IN_NEWTON = ("ram", "disk", "io_ops", "soft_affinity", "soft_anti_affinity")


def _formerly(name: str) -> list[cfg.DeprecatedOpt]:
    return [cfg.DeprecatedOpt(name, group="DEFAULT")]


def _multiplier(weigher: str, default: float, about: str) -> cfg.Opt:
    name = f"{weigher}_weight_multiplier"
    return cfg.FloatOpt(
        name,
        default=default,
        min=0.0 if weigher == "pci" else None,
        deprecated_opts=_formerly(name) if weigher in _IN_NEWTON else [],
        help=f"{about} The normalised weight (0.0 to 1.0) is multiplied by this; a negative "
        "value turns the preference round, 0.0 switches the weigher off.",
    )


OPTIONS: list[cfg.Opt] = [
    cfg.MultiStrOpt(
        "available_filters",
        default=["nova.scheduler.filters.all_filters"],
        deprecated_opts=_formerly("scheduler_available_filters"),
        help="Filters that may be enabled: the dotted path of a class, or of a function that "
        "returns classes. May be given several times. `nova.scheduler.filters.all_filters` "
        "stands for every filter that comes with the scheduler; setting this option replaces the "
        "default, so give that line too when adding a filter of your own.",
    ),
    cfg.StrOpt(
        "extensions_directory",
        default="/etc/nova/scheduler.d",
        help="Folder of Python files with filters, weighers and drivers of this site. A class in "
        "one of them is found by its name: in enabled_filters, weight_classes and `[scheduler] "
        "driver` that name is enough. Files may import each other.",
    ),
    cfg.ListOpt(
        "enabled_filters",
        default=DEFAULT_FILTERS,
        deprecated_opts=_formerly("scheduler_default_filters"),
        help="Class names of the filters that run, in this order. A name that is not among "
        "available_filters may be an entry point of the namespace `nova.scheduler.filters`, or a "
        "class in extensions_directory; any other stops the start. With `[scheduler] claims = "
        "placement` the default is that of today's Nova, without the first four.",
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
    # Of filters.
    cfg.IntOpt(
        "max_io_ops_per_host",
        default=8,
        deprecated_opts=_formerly("max_io_ops_per_host"),
        help="IoOpsFilter: a host with this many servers being built, rebuilt, resized or cold "
        "migrated, snapshotted, backed up, rescued or unshelved gets no further one. With a value "
        "below 1 every host is full. AggregateIoOpsFilter: the same, unless an aggregate of the "
        "host has metadata of this name.",
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
        help="AggregateImagePropertiesIsolation: the text between the namespace and the rest of "
        "the key.",
    ),
    # Of weighers.
    _multiplier("ram", 1.0, "RAMWeigher: prefers hosts with more free memory."),
    _multiplier("disk", 1.0, "DiskWeigher: prefers hosts with more free disk."),
    _multiplier(
        "cpu", 1.0, "CPUWeigher: prefers hosts with more free processors, overcommit included."
    ),
    _multiplier(
        "io_ops",
        -1.0,
        "IoOpsWeigher: the default, being negative, prefers hosts with fewer servers in the "
        "middle of an operation.",
    ),
    _multiplier(
        "soft_affinity",
        1.0,
        "ServerGroupSoftAffinityWeigher: prefers hosts with more servers of the request's group. "
        "Below 0 only with `[scheduler] semantics = newton`.",
    ),
    _multiplier(
        "soft_anti_affinity",
        1.0,
        "ServerGroupSoftAntiAffinityWeigher: prefers hosts with fewer servers of the request's "
        "group. Below 0 only with `[scheduler] semantics = newton`.",
    ),
    _multiplier(
        "pci", 1.0, "PCIWeigher: keeps hosts with free PCI devices for the servers that need them."
    ),
    _multiplier(
        "build_failure",
        1_000_000.0,
        "BuildFailureWeigher: avoids hosts whose latest builds failed.",
    ),
    _multiplier(
        "cross_cell_move",
        1_000_000.0,
        "CrossCellWeigher: prefers hosts of the server's own cell for a move that may leave it.",
    ),
    _multiplier(
        "hypervisor_version",
        1.0,
        "HypervisorVersionWeigher: prefers hosts with a newer hypervisor.",
    ),
    _multiplier("num_instances", 0.0, "NumInstancesWeigher: prefers hosts with more servers."),
    _multiplier(
        "image_props",
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

METRICS = cfg.OptGroup(
    "metrics", title="Metrics", help="Metrics that compute hosts report, and their weights."
)

METRICS_OPTIONS: list[cfg.Opt] = [
    cfg.FloatOpt(
        "weight_multiplier",
        default=1.0,
        help="MetricsWeigher: the normalised weight (0.0 to 1.0) is multiplied by this; 0.0 "
        "switches the weigher off.",
    ),
    cfg.ListOpt(
        "weight_setting",
        default=[],
        help="Metrics that count, as `name=ratio` items; a host's weight is the sum of value "
        "times ratio. MetricsFilter passes the hosts that report all of them. There must be no "
        "blank before the equals sign: it would belong to the name.",
    ),
    cfg.BoolOpt(
        "required",
        default=True,
        help="MetricsWeigher: whether a request fails when a host lacks one of the metrics. "
        "MetricsFilter keeps such hosts away from it.",
    ),
    cfg.FloatOpt(
        "weight_of_unavailable",
        default=-10000.0,
        help="MetricsWeigher: weight, before it is normalised, of a host that lacks one of the "
        "metrics, where required is false.",
    ),
]

TRUSTED_COMPUTING = cfg.OptGroup(
    "trusted_computing",
    title="Trusted computing",
    help="The attestation server that TrustedFilter asks.",
)

TRUSTED_COMPUTING_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "attestation_server",
        help="Name or address of the attestation server. Unset: no host is known to be trusted.",
    ),
    cfg.StrOpt(
        "attestation_server_ca_file",
        help="File with the certificates of the authorities that may have signed the server's. "
        "Unset: those of the system.",
    ),
    cfg.StrOpt("attestation_port", default="8443", help="Port of the attestation server."),
    cfg.StrOpt(
        "attestation_api_url",
        default="/OpenAttestationWebServices/V1.0",
        help="Path of the attestation server's interface.",
    ),
    cfg.StrOpt(
        "attestation_auth_blob",
        secret=True,
        help="Text sent along as the header `x-auth-blob`. Unset: no such header.",
    ),
    cfg.IntOpt(
        "attestation_auth_timeout",
        default=60,
        help="For how many seconds after its own time stamp an answer about a host counts. 0 or "
        "less: the server is asked for every decision.",
    ),
    cfg.BoolOpt(
        "attestation_insecure_ssl",
        default=False,
        help="Whether attestation_server_ca_file is ignored. The server's certificate is checked "
        "all the same, against the authorities of the system.",
    ),
]


def parse_ratios(items: Iterable[str], option: str) -> list[tuple[str, float]]:
    """The (name, ratio) pairs of *items* (``name=ratio``), in order; names keep their blanks.

    Items without a name or with a ratio that is no number are left out, with one warning that
    names *option* (reference page scheduling, section 9.6).
    """
    pairs, bad = [], []
    for item in items:
        name, _separator, ratio = item.partition("=")
        try:
            value = float(ratio)
        except ValueError:
            name = ""
        if name:
            pairs.append((name, value))
        else:
            bad.append(item)
    if bad:
        LOG.warning("Ignoring the invalid elements of the option %s: %s", option, ", ".join(bad))
    return pairs


def set_default_chain(conf: cfg.ConfigOpts) -> None:
    """Let the default of ``enabled_filters`` follow ``[scheduler] claims``."""
    with contextlib.suppress(ValueError):  # of the option, for which the checks have a place
        if conf.scheduler.claims == "placement":
            conf.set_default("enabled_filters", PLACEMENT_FILTERS, group=GROUP)


def log_default_chain(conf: cfg.ConfigOpts) -> None:
    """Log the filters, and whose they are, where the operator names none."""
    location = conf.get_location("enabled_filters", GROUP.name)
    defaults = {cfg.Locations.opt_default: "Newton's", cfg.Locations.set_default: "today's Nova's"}
    if location is not None and location.location in defaults:
        chain = ", ".join(conf[GROUP.name].enabled_filters)
        LOG.info("Filters, by default %s: %s", defaults[location.location], chain)
