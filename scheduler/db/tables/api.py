"""API layout: rows are really deleted (reference page database, section 4)."""

from __future__ import annotations

from sqlalchemy import Float, Index, Text, UniqueConstraint

from scheduler.db.tables.columns import (
    MediumText,
    api_table,
    booleans,
    columns,
    index,
    integers,
    reference,
    strings,
    uuids,
)

aggregates = api_table(
    "aggregates",
    *uuids("uuid"),
    *strings("name"),
    UniqueConstraint("name", name="uniq_aggregate0name"),
    Index("aggregate_uuid_idx", "uuid"),
    index("aggregates", "updated_at"),
)

aggregate_hosts = api_table(
    "aggregate_hosts",
    *strings("host"),
    reference("aggregate_id", "aggregates.id"),
    UniqueConstraint("host", "aggregate_id", name="uniq_aggregate_hosts0host0aggregate_id"),
    index("aggregate_hosts", "aggregate_id"),
    index("aggregate_hosts", "updated_at"),
)

aggregate_metadata = api_table(
    "aggregate_metadata",
    reference("aggregate_id", "aggregates.id"),
    *strings("key", "value", required=True),
    UniqueConstraint("aggregate_id", "key", name="uniq_aggregate_metadata0aggregate_id0key"),
    index("aggregate_metadata", "key"),
    index("aggregate_metadata", "updated_at"),
)

instance_groups = api_table(
    "instance_groups",
    *strings("user_id", "project_id", "name"),
    *uuids("uuid", required=True),
    UniqueConstraint("uuid", name="uniq_instance_groups0uuid"),
)

instance_group_member = api_table(
    "instance_group_member",
    *strings("instance_uuid"),
    reference("group_id", "instance_groups.id"),
    Index("instance_group_member_instance_idx", "instance_uuid"),
    index("instance_group_member", "group_id"),
)

instance_group_policy = api_table(
    "instance_group_policy",
    *strings("policy"),
    reference("group_id", "instance_groups.id"),
    *columns(Text, "rules"),
    index("instance_group_policy", "policy"),
    index("instance_group_policy", "group_id"),
)

flavors = api_table(
    "flavors",
    *strings("name", "flavorid", required=True),
    *integers("memory_mb", "vcpus", "swap", required=True),
    *integers("root_gb", "ephemeral_gb", "vcpu_weight"),
    *columns(Float, "rxtx_factor"),
    *booleans("disabled", "is_public"),
    *columns(Text, "description"),
    UniqueConstraint("name", name="uniq_flavors0name"),
    UniqueConstraint("flavorid", name="uniq_flavors0flavorid"),
)

flavor_extra_specs = api_table(
    "flavor_extra_specs",
    reference("flavor_id", "flavors.id"),
    *strings("key", required=True),
    *strings("value"),
    UniqueConstraint("flavor_id", "key", name="uniq_flavor_extra_specs0flavor_id0key"),
)

flavor_projects = api_table(
    "flavor_projects",
    reference("flavor_id", "flavors.id"),
    *strings("project_id", required=True),
    UniqueConstraint("flavor_id", "project_id", name="uniq_flavor_projects0flavor_id0project_id"),
)

request_specs = api_table(
    "request_specs",
    *uuids("instance_uuid", required=True),
    *columns(MediumText, "spec", required=True),
    UniqueConstraint("instance_uuid", name="uniq_request_specs0instance_uuid"),
)

build_requests = api_table(
    "build_requests",
    *strings("project_id", required=True),
    *uuids("instance_uuid"),
    *columns(MediumText, "instance", "block_device_mappings"),
    *columns(Text, "tags"),
    UniqueConstraint("instance_uuid", name="uniq_build_requests0instance_uuid"),
    index("build_requests", "project_id"),
)

cell_mappings = api_table(
    "cell_mappings",
    *uuids("uuid", required=True),
    *strings("name"),
    *columns(Text, "transport_url", "database_connection"),
    *booleans("disabled"),
    UniqueConstraint("uuid", name="uniq_cell_mappings0uuid"),
)

instance_mappings = api_table(
    "instance_mappings",
    *uuids("instance_uuid", required=True),
    reference("cell_id", "cell_mappings.id", required=False),
    *strings("project_id", required=True),
    *booleans("queued_for_delete"),
    *strings("user_id"),
    UniqueConstraint("instance_uuid", name="uniq_instance_mappings0instance_uuid"),
    index("instance_mappings", "cell_id"),
    index("instance_mappings", "project_id"),
    index("instance_mappings", "user_id", "project_id"),
)

host_mappings = api_table(
    "host_mappings",
    reference("cell_id", "cell_mappings.id"),
    *strings("host", required=True),
    UniqueConstraint("host", name="uniq_host_mappings0host"),
    index("host_mappings", "cell_id"),
)
