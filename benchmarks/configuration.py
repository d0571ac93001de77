"""Options of the scheduler under measurement, from a subject's settings."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from scheduler import conf as options
from scheduler.conf.filter_scheduler import DEFAULT_FILTERS

#: What ``filters`` may name instead of listing them.
CHAINS = {
    "newton": tuple(DEFAULT_FILTERS),
    "today": (
        "ComputeFilter",
        "ComputeCapabilitiesFilter",
        "ImagePropertiesFilter",
        "ServerGroupAntiAffinityFilter",
        "ServerGroupAffinityFilter",
    ),
}
#: The weighers that Newton has; ``weighers`` may name it.
NEWTON_WEIGHERS = tuple(
    f"nova.scheduler.weights.{path}"
    for path in (
        "ram.RAMWeigher",
        "disk.DiskWeigher",
        "metrics.MetricsWeigher",
        "io_ops.IoOpsWeigher",
        "affinity.ServerGroupSoftAffinityWeigher",
        "affinity.ServerGroupSoftAntiAffinityWeigher",
    )
)


def groups(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Option values by group: driver, ``filters``, ``weighers`` and whatever ``options`` says."""
    given: Mapping[str, Mapping[str, Any]] = settings.get("options", {})
    found: dict[str, dict[str, Any]] = {
        "DEFAULT": {},
        "scheduler": {
            "driver": settings.get("driver", "caching_scheduler"),
            "claims": "none",
            "workers": 1,
        },
        "filter_scheduler": {"enabled_filters": list(chain(settings.get("filters", "newton")))},
    }
    if settings.get("weighers") == "newton":
        found["filter_scheduler"]["weight_classes"] = list(NEWTON_WEIGHERS)
    for group, values in given.items():
        found.setdefault(group, {}).update(values)
    return found


def chain(filters: str | list[str]) -> tuple[str, ...]:
    """Filter names; those after ``newton`` or ``today`` in a list are added to that chain."""
    named = [filters] if isinstance(filters, str) else filters
    return tuple(name for each in named for name in CHAINS.get(each, (each,)))


def in_process(settings: Mapping[str, Any]) -> cfg.ConfigOpts:
    """The options as an object of its own."""
    conf = cfg.ConfigOpts()
    options.register_all(conf)
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    for group, values in groups(settings).items():
        for name, value in values.items():
            conf.set_override(name, value, group=None if group == "DEFAULT" else group)
    return conf
