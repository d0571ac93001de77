"""Create what Nova keeps in its API database."""

import sqlalchemy as sa

from scheduler.db.migrations.schema import (
    MEDIUM_TEXT,
    booleans,
    columns,
    create_api_table,
    index,
    integers,
    reference,
    strings,
    uuids,
)

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    _create_aggregates()
    _create_groups()
    _create_flavors()
    _create_requests()
    _create_mappings()


def _create_aggregates() -> None:
    create_api_table(
        "aggregates",
        *uuids("uuid"),
        *strings("name"),
        sa.UniqueConstraint("name", name="uniq_aggregate0name"),
        sa.Index("aggregate_uuid_idx", "uuid"),
        index("aggregates", "updated_at"),
    )
    create_api_table(
        "aggregate_hosts",
        *strings("host"),
        reference("aggregate_id", "aggregates.id"),
        sa.UniqueConstraint("host", "aggregate_id", name="uniq_aggregate_hosts0host0aggregate_id"),
        index("aggregate_hosts", "aggregate_id"),
        index("aggregate_hosts", "updated_at"),
    )
    create_api_table(
        "aggregate_metadata",
        reference("aggregate_id", "aggregates.id"),
        *strings("key", "value", required=True),
        sa.UniqueConstraint("aggregate_id", "key", name="uniq_aggregate_metadata0aggregate_id0key"),
        index("aggregate_metadata", "key"),
        index("aggregate_metadata", "updated_at"),
    )


def _create_groups() -> None:
    create_api_table(
        "instance_groups",
        *strings("user_id", "project_id", "name"),
        *uuids("uuid", required=True),
        sa.UniqueConstraint("uuid", name="uniq_instance_groups0uuid"),
    )
    create_api_table(
        "instance_group_member",
        *strings("instance_uuid"),
        reference("group_id", "instance_groups.id"),
        sa.Index("instance_group_member_instance_idx", "instance_uuid"),
        index("instance_group_member", "group_id"),
    )
    create_api_table(
        "instance_group_policy",
        *strings("policy"),
        reference("group_id", "instance_groups.id"),
        *columns(sa.Text(), "rules"),
        index("instance_group_policy", "policy"),
        index("instance_group_policy", "group_id"),
    )


def _create_flavors() -> None:
    create_api_table(
        "flavors",
        *strings("name", "flavorid", required=True),
        *integers("memory_mb", "vcpus", "swap", required=True),
        *integers("root_gb", "ephemeral_gb", "vcpu_weight"),
        *columns(sa.Float(), "rxtx_factor"),
        *booleans("disabled", "is_public"),
        *columns(sa.Text(), "description"),
        sa.UniqueConstraint("name", name="uniq_flavors0name"),
        sa.UniqueConstraint("flavorid", name="uniq_flavors0flavorid"),
    )
    create_api_table(
        "flavor_extra_specs",
        reference("flavor_id", "flavors.id"),
        *strings("key", required=True),
        *strings("value"),
        sa.UniqueConstraint("flavor_id", "key", name="uniq_flavor_extra_specs0flavor_id0key"),
    )
    create_api_table(
        "flavor_projects",
        reference("flavor_id", "flavors.id"),
        *strings("project_id", required=True),
        sa.UniqueConstraint(
            "flavor_id", "project_id", name="uniq_flavor_projects0flavor_id0project_id"
        ),
    )


def _create_requests() -> None:
    create_api_table(
        "request_specs",
        *uuids("instance_uuid", required=True),
        *columns(MEDIUM_TEXT, "spec", required=True),
        sa.UniqueConstraint("instance_uuid", name="uniq_request_specs0instance_uuid"),
    )
    create_api_table(
        "build_requests",
        *strings("project_id", required=True),
        *uuids("instance_uuid"),
        *columns(MEDIUM_TEXT, "instance", "block_device_mappings"),
        *columns(sa.Text(), "tags"),
        sa.UniqueConstraint("instance_uuid", name="uniq_build_requests0instance_uuid"),
        index("build_requests", "project_id"),
    )


def _create_mappings() -> None:
    create_api_table(
        "cell_mappings",
        *uuids("uuid", required=True),
        *strings("name"),
        *columns(sa.Text(), "transport_url", "database_connection"),
        *booleans("disabled"),
        sa.UniqueConstraint("uuid", name="uniq_cell_mappings0uuid"),
    )
    create_api_table(
        "instance_mappings",
        *uuids("instance_uuid", required=True),
        reference("cell_id", "cell_mappings.id", required=False),
        *strings("project_id", required=True),
        *booleans("queued_for_delete"),
        *strings("user_id"),
        sa.UniqueConstraint("instance_uuid", name="uniq_instance_mappings0instance_uuid"),
        index("instance_mappings", "cell_id"),
        index("instance_mappings", "project_id"),
        index("instance_mappings", "user_id", "project_id"),
    )
    create_api_table(
        "host_mappings",
        reference("cell_id", "cell_mappings.id"),
        *strings("host", required=True),
        sa.UniqueConstraint("host", name="uniq_host_mappings0host"),
        index("host_mappings", "cell_id"),
    )
