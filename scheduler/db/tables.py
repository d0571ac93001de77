"""Every table, and the *metadata* that holds them all.

One schema usable on one database: Nova's 2026 columns (reference page database, sections 3
and 4), plus indexes that make reading only the changes cheap, plus this project's own tables.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Enum,
    Float,
    ForeignKey,
    Index,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from scheduler.db.columns import (
    OPTIONS,
    IPAddress,
    MediumText,
    api_table,
    booleans,
    columns,
    index,
    integers,
    main_table,
    metadata,
    own_table,
    reference,
    strings,
    uuids,
)

# --- main layout (section 3); indexes on timestamps and flags serve polls of changed rows -------


def _instance_uuid(*, required: bool = False) -> Column[Any]:
    return Column("instance_uuid", String(36), ForeignKey("instances.uuid"), nullable=not required)


compute_nodes = main_table(
    "compute_nodes",
    *integers("service_id"),
    *strings("host"),
    *uuids("uuid"),
    *integers("vcpus", "memory_mb", "local_gb", required=True),
    *integers("vcpus_used", "memory_mb_used", "local_gb_used", required=True),
    *columns(MediumText, "hypervisor_type", "cpu_info", required=True),
    *integers("hypervisor_version", required=True),
    *strings("hypervisor_hostname"),
    *integers("free_ram_mb", "free_disk_gb", "disk_available_least"),
    *integers("current_workload", "running_vms"),
    *columns(IPAddress, "host_ip"),
    *columns(Text, "supported_instances", "pci_stats", "metrics"),
    *columns(Text, "extra_resources", "stats", "numa_topology"),
    *columns(Float, "ram_allocation_ratio", "cpu_allocation_ratio", "disk_allocation_ratio"),
    *integers("mapped"),
    UniqueConstraint(
        "host",
        "hypervisor_hostname",
        "deleted",
        name="uniq_compute_nodes0host0hypervisor_hostname0deleted",
    ),
    Index("compute_nodes_uuid_idx", "uuid", unique=True),
    index("compute_nodes", "updated_at"),
    index("compute_nodes", "created_at"),
    index("compute_nodes", "deleted_at"),
    index("compute_nodes", "deleted", "id"),
)

services = main_table(
    "services",
    *uuids("uuid"),
    *strings("host", "binary", "topic"),
    *integers("report_count", required=True),
    *booleans("disabled", "forced_down"),
    *strings("disabled_reason"),
    *columns(DateTime, "last_seen_up"),
    *integers("version"),
    UniqueConstraint("host", "topic", "deleted", name="uniq_services0host0topic0deleted"),
    UniqueConstraint("host", "binary", "deleted", name="uniq_services0host0binary0deleted"),
    Index("services_uuid_idx", "uuid", unique=True),
    index("services", "updated_at"),
    index("services", "created_at"),
    index("services", "deleted_at"),
    index("services", "binary", "deleted", "id"),
    index("services", "deleted", "disabled"),
    index("services", "deleted", "forced_down"),
)

instances = main_table(
    "instances",
    *uuids("uuid", required=True),
    *strings("user_id", "project_id", "image_ref", "kernel_id", "ramdisk_id", "key_name"),
    *strings("vm_state", "task_state", "hostname", "display_name", "display_description"),
    *strings("host", "node", "reservation_id", "availability_zone", "os_type", "architecture"),
    *strings("vm_mode", "root_device_name", "default_ephemeral_device"),
    *strings("default_swap_device", "config_drive", "cell_name"),
    *columns(MediumText, "key_data", "user_data", "launched_on"),
    *integers("launch_index", "power_state", "memory_mb", "vcpus", "root_gb", "ephemeral_gb"),
    *integers("instance_type_id", "progress", "internal_id", "cleaned"),
    *columns(BigInteger, "compute_id"),
    *columns(DateTime, "launched_at", "terminated_at"),
    *booleans("locked", "auto_disk_config", "shutdown_terminate", "disable_terminate"),
    *booleans("hidden"),
    *columns(Enum("owner", "admin", name="instances0locked_by"), "locked_by"),
    *columns(IPAddress, "access_ip_v4", "access_ip_v6"),
    *uuids("ephemeral_key_uuid"),
    UniqueConstraint("uuid", name="uniq_instances0uuid"),
    index("instances", "project_id"),
    index("instances", "project_id", "deleted"),
    index("instances", "updated_at", "project_id"),
    index("instances", "deleted", "created_at"),
    index("instances", "terminated_at", "launched_at"),
    index("instances", "reservation_id"),
    index("instances", "host", "node", "deleted"),
    index("instances", "uuid", "deleted"),
    index("instances", "host", "deleted", "cleaned"),
    index("instances", "task_state", "updated_at"),
    index("instances", "compute_id", "deleted"),
    index("instances", "created_at"),
    index("instances", "deleted_at"),
)

instance_extra = main_table(
    "instance_extra",
    _instance_uuid(required=True),
    *columns(Text, "numa_topology", "pci_requests", "flavor", "vcpu_model"),
    *columns(Text, "migration_context", "keypairs", "device_metadata"),
    *columns(Text, "trusted_certs", "resources", "vpmems"),
    Index("instance_extra_idx", "instance_uuid"),
)

instance_faults = main_table(
    "instance_faults",
    _instance_uuid(),
    *integers("code", required=True),
    *strings("message", "host"),
    *columns(MediumText, "details"),
    index("instance_faults", "host"),
    index("instance_faults", "instance_uuid", "deleted", "created_at"),
)

instance_metadata = main_table(
    "instance_metadata",
    _instance_uuid(),
    *strings("key", "value"),
    index("instance_metadata", "instance_uuid"),
)

instance_system_metadata = main_table(
    "instance_system_metadata",
    _instance_uuid(required=True),
    *strings("key", required=True),
    *strings("value"),
    index("instance_system_metadata", "instance_uuid"),
)

block_device_mapping = main_table(
    "block_device_mapping",
    _instance_uuid(),
    *uuids("uuid", "snapshot_id", "volume_id", "image_id", "attachment_id"),
    *uuids("encryption_secret_uuid"),
    *strings("source_type", "destination_type", "guest_format", "device_type", "disk_bus"),
    *strings("device_name", "tag", "volume_type"),
    *integers("boot_index", "volume_size"),
    *booleans("delete_on_termination", "no_device", "encrypted"),
    *columns(MediumText, "connection_info"),
    Column("encryption_format", String(128)),
    Column("encryption_options", String(4096)),
    UniqueConstraint("uuid", name="uniq_block_device_mapping0uuid"),
    index("block_device_mapping", "instance_uuid"),
    index("block_device_mapping", "instance_uuid", "device_name"),
    index("block_device_mapping", "instance_uuid", "volume_id"),
    index("block_device_mapping", "volume_id"),
    index("block_device_mapping", "snapshot_id"),
)

# --- API layout: rows are really deleted (section 4) -------------------------------------------

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

# --- tables of this project's own ---------------------------------------------------------------

# Claims (docs/decisions/0007): *generation* of a host is the number of claims ever made on it,
# which a claim compares and swaps; that of a claim is the generation that it made.
claim_hosts = own_table(
    "claim_hosts",
    *strings("host", "node", required=True),
    *integers("generation", required=True),
    UniqueConstraint("host", "node", name="uniq_claim_hosts0host0node"),
)

claims = own_table(
    "claims",
    *uuids("consumer_uuid", required=True),
    *strings("host", "node", required=True),
    *integers("generation", "vcpus", "memory_mb", "disk_gb", required=True),
    *columns(MediumText, "numa_topology", "pci_requests"),
    *integers("flavor_id"),
    # Where the instance was when another host was claimed for it.
    *strings("source_host"),
    *strings("request_id", required=True),
    *columns(MediumText, "answer"),
    *columns(DateTime, "created_at", "expires_at", required=True),
    *columns(DateTime, "closed_at"),
    UniqueConstraint("consumer_uuid", name="uniq_claims0consumer_uuid"),
    index("claims", "closed_at", "id"),
    index("claims", "host", "node", "generation"),
    sqlite_autoincrement=True,  # the id of a claim is never used again
)

decisions = own_table(
    "decisions",
    *columns(DateTime, "recorded_at", required=True),
    *strings("daemon", required=True),
    *strings("request_id"),
    *columns(String(32), "outcome", required=True),
    *columns(MediumText, "record", required=True),  # JSON in the form of docs/explain.md
    index("decisions", "request_id"),
    index("decisions", "recorded_at"),
    sqlite_autoincrement=True,  # ids tell which decisions are older
)

decision_instances = own_table(
    "decision_instances",
    reference("decision_id", "decisions.id"),
    *uuids("instance_uuid", required=True),
    index("decision_instances", "instance_uuid"),
    index("decision_instances", "decision_id"),
)

# Moved by triggers (migration.py).  "aggregates": any change of an aggregate, its hosts
# or metadata; "services": a service came, went or got another name; "compute_nodes", "instances":
# living rows vanished without a trace.
change_counters = Table(
    "change_counters",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
    **OPTIONS,
)
