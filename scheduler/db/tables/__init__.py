"""Every table under its own name, and the *metadata* that holds them all.

One schema usable on one database: Nova's 2026 columns (reference page database, sections 3
and 4), plus indexes that make reading only the changes cheap.
"""

from scheduler.db.tables.api import (
    aggregate_hosts,
    aggregate_metadata,
    aggregates,
    build_requests,
    cell_mappings,
    flavor_extra_specs,
    flavor_projects,
    flavors,
    host_mappings,
    instance_group_member,
    instance_group_policy,
    instance_groups,
    instance_mappings,
    request_specs,
)
from scheduler.db.tables.columns import metadata
from scheduler.db.tables.main import (
    block_device_mapping,
    compute_nodes,
    instance_extra,
    instance_faults,
    instance_metadata,
    instance_system_metadata,
    instances,
    services,
)
from scheduler.db.tables.own import (
    change_counters,
    claim_hosts,
    claims,
    decision_instances,
    decisions,
)

__all__ = [
    "aggregate_hosts",
    "aggregate_metadata",
    "aggregates",
    "block_device_mapping",
    "build_requests",
    "cell_mappings",
    "change_counters",
    "claim_hosts",
    "claims",
    "compute_nodes",
    "decision_instances",
    "decisions",
    "flavor_extra_specs",
    "flavor_projects",
    "flavors",
    "host_mappings",
    "instance_extra",
    "instance_faults",
    "instance_group_member",
    "instance_group_policy",
    "instance_groups",
    "instance_mappings",
    "instance_metadata",
    "instance_system_metadata",
    "instances",
    "metadata",
    "request_specs",
    "services",
]
