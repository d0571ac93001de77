"""API layout: rows are really deleted (reference page database, section 4)."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from scheduler.db.tables.columns import TABLE_OPTIONS, MediumText, metadata, timestamps

aggregates = Table(
    "aggregates",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36)),
    Column("name", String(255)),
    UniqueConstraint("name", name="uniq_aggregate0name"),
    Index("aggregate_uuid_idx", "uuid"),
    Index("aggregates_updated_at_idx", "updated_at"),
    **TABLE_OPTIONS,
)

aggregate_hosts = Table(
    "aggregate_hosts",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("host", String(255)),
    Column("aggregate_id", Integer, ForeignKey("aggregates.id"), nullable=False),
    UniqueConstraint("host", "aggregate_id", name="uniq_aggregate_hosts0host0aggregate_id"),
    Index("aggregate_hosts_aggregate_id_idx", "aggregate_id"),
    Index("aggregate_hosts_updated_at_idx", "updated_at"),
    **TABLE_OPTIONS,
)

aggregate_metadata = Table(
    "aggregate_metadata",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("aggregate_id", Integer, ForeignKey("aggregates.id"), nullable=False),
    Column("key", String(255), nullable=False),
    Column("value", String(255), nullable=False),
    UniqueConstraint("aggregate_id", "key", name="uniq_aggregate_metadata0aggregate_id0key"),
    Index("aggregate_metadata_key_idx", "key"),
    Index("aggregate_metadata_updated_at_idx", "updated_at"),
    **TABLE_OPTIONS,
)

instance_groups = Table(
    "instance_groups",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("user_id", String(255)),
    Column("project_id", String(255)),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255)),
    UniqueConstraint("uuid", name="uniq_instance_groups0uuid"),
    **TABLE_OPTIONS,
)

instance_group_member = Table(
    "instance_group_member",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("instance_uuid", String(255)),
    Column("group_id", Integer, ForeignKey("instance_groups.id"), nullable=False),
    Index("instance_group_member_instance_idx", "instance_uuid"),
    Index("instance_group_member_group_id_idx", "group_id"),
    **TABLE_OPTIONS,
)

instance_group_policy = Table(
    "instance_group_policy",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("policy", String(255)),
    Column("group_id", Integer, ForeignKey("instance_groups.id"), nullable=False),
    Column("rules", Text),
    Index("instance_group_policy_policy_idx", "policy"),
    Index("instance_group_policy_group_id_idx", "group_id"),
    **TABLE_OPTIONS,
)

flavors = Table(
    "flavors",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("name", String(255), nullable=False),
    Column("memory_mb", Integer, nullable=False),
    Column("vcpus", Integer, nullable=False),
    Column("root_gb", Integer),
    Column("ephemeral_gb", Integer),
    Column("flavorid", String(255), nullable=False),
    Column("swap", Integer, nullable=False),
    Column("rxtx_factor", Float),
    Column("vcpu_weight", Integer),
    Column("disabled", Boolean),
    Column("is_public", Boolean),
    Column("description", Text),
    UniqueConstraint("name", name="uniq_flavors0name"),
    UniqueConstraint("flavorid", name="uniq_flavors0flavorid"),
    **TABLE_OPTIONS,
)

flavor_extra_specs = Table(
    "flavor_extra_specs",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("flavor_id", Integer, ForeignKey("flavors.id"), nullable=False),
    Column("key", String(255), nullable=False),
    Column("value", String(255)),
    UniqueConstraint("flavor_id", "key", name="uniq_flavor_extra_specs0flavor_id0key"),
    **TABLE_OPTIONS,
)

flavor_projects = Table(
    "flavor_projects",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("flavor_id", Integer, ForeignKey("flavors.id"), nullable=False),
    Column("project_id", String(255), nullable=False),
    UniqueConstraint("flavor_id", "project_id", name="uniq_flavor_projects0flavor_id0project_id"),
    **TABLE_OPTIONS,
)

request_specs = Table(
    "request_specs",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("instance_uuid", String(36), nullable=False),
    Column("spec", MediumText, nullable=False),
    UniqueConstraint("instance_uuid", name="uniq_request_specs0instance_uuid"),
    **TABLE_OPTIONS,
)

build_requests = Table(
    "build_requests",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("project_id", String(255), nullable=False),
    Column("instance_uuid", String(36)),
    Column("instance", MediumText),
    Column("block_device_mappings", MediumText),
    Column("tags", Text),
    UniqueConstraint("instance_uuid", name="uniq_build_requests0instance_uuid"),
    Index("build_requests_project_id_idx", "project_id"),
    **TABLE_OPTIONS,
)

cell_mappings = Table(
    "cell_mappings",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255)),
    Column("transport_url", Text),
    Column("database_connection", Text),
    Column("disabled", Boolean),
    UniqueConstraint("uuid", name="uniq_cell_mappings0uuid"),
    **TABLE_OPTIONS,
)

instance_mappings = Table(
    "instance_mappings",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("instance_uuid", String(36), nullable=False),
    Column("cell_id", Integer, ForeignKey("cell_mappings.id")),
    Column("project_id", String(255), nullable=False),
    Column("queued_for_delete", Boolean),
    Column("user_id", String(255)),
    UniqueConstraint("instance_uuid", name="uniq_instance_mappings0instance_uuid"),
    Index("instance_mappings_cell_id_idx", "cell_id"),
    Index("instance_mappings_project_id_idx", "project_id"),
    Index("instance_mappings_user_id_project_id_idx", "user_id", "project_id"),
    **TABLE_OPTIONS,
)

host_mappings = Table(
    "host_mappings",
    metadata,
    *timestamps(),
    Column("id", Integer, primary_key=True),
    Column("cell_id", Integer, ForeignKey("cell_mappings.id"), nullable=False),
    Column("host", String(255), nullable=False),
    UniqueConstraint("host", name="uniq_host_mappings0host"),
    Index("host_mappings_cell_id_idx", "cell_id"),
    **TABLE_OPTIONS,
)
