"""Changes between two readings of the configuration (reference page config, section 1.4)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from oslo_config import cfg

from scheduler.conf.names import DEFAULT, Name, is_set, registered, section, value

ALL: Final = "*"
"""Stands for every option of a group."""

#: Options that every program takes over while it runs.
LIVE_LOGGING: Final = frozenset(
    {(DEFAULT, "debug"), (DEFAULT, "default_log_levels"), (DEFAULT, "log_config_append")}
)

_LIVE_DEFAULT: Final = """
service_down_time scheduler_json_config_location default_availability_zone
cpu_allocation_ratio ram_allocation_ratio disk_allocation_ratio
initial_cpu_allocation_ratio initial_ram_allocation_ratio initial_disk_allocation_ratio
"""
_LIVE_SCHEDULER: Final = """
max_attempts periodic_task_interval max_instances_per_request max_request_entries
max_request_text_characters max_decision_seconds expose_reasons answers_kept_seconds
answers_kept_servers full_refresh_interval_seconds max_state_age_seconds state_fresh_seconds
max_placement_results query_placement_for_availability_zone query_placement_for_image_type_support
limit_tenants_to_placement_aggregate placement_aggregate_required_for_tenants
image_metadata_prefilter accept_options_without_effect nova_compat_imports
enable_isolated_aggregate_filtering query_placement_for_routed_network_aggregates
placement_query placement_refusals placement_memory_seconds placement_deadline_seconds
"""

#: Options that the scheduler takes over while it runs; all others need a restart.
LIVE: Final = LIVE_LOGGING | {
    *((DEFAULT, name) for name in _LIVE_DEFAULT.split()),
    *(("scheduler", name) for name in _LIVE_SCHEDULER.split()),
    ("filter_scheduler", ALL),
    ("neutron", ALL),
    ("pci", "alias"),
    ("metrics", ALL),
    ("trusted_computing", ALL),
    ("explain", "memory_bytes"),
    ("workarounds", "disable_fallback_pcpu_query"),
}

#: Options by which the files were found: no settings of their own.
_NO_SETTINGS: Final = frozenset({"config_file", "config_dir", "config_source"})


@dataclass(frozen=True)
class Change:
    """A configuration that was read again, and what is new in it."""

    #: Where an option needs a restart, it has its former value here.
    conf: cfg.ConfigOpts
    live: tuple[Name, ...]
    for_restart: tuple[Name, ...]


def compare(
    first: cfg.ConfigOpts, before: cfg.ConfigOpts, fresh: cfg.ConfigOpts, live: Collection[Name]
) -> Change:
    """Changes from *before* to *fresh*; in *fresh* those that are not *live* are undone.

    What the *first* configuration did not set, the start may have found out.
    """
    changed: dict[bool, list[Name]] = {True: [], False: []}
    still_there = set(registered(fresh))
    for group, name in registered(before):
        former = value(before, group, name)
        is_setting = (group, name) in still_there and name not in _NO_SETTINGS
        if not is_setting or value(fresh, group, name) == former:
            continue
        takes_effect = (group, name) in live or (group, ALL) in live
        known = before if takes_effect else first
        if not (is_set(fresh, group, name) or is_set(known, group, name)):
            fresh.set_default(name, former, section(group))
            continue
        changed[takes_effect].append((group, name))
        if not takes_effect:
            fresh.set_override(name, former, section(group))
    return Change(fresh, tuple(sorted(changed[True])), tuple(sorted(changed[False])))


def listed(names: Collection[Name]) -> str:
    """The options as a reader of the file knows them."""
    return ", ".join(f"[{group}] {name}" for group, name in names)
