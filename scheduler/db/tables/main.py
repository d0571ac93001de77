"""Main layout: compute nodes, services, instances (reference page database, section 3).

The indexes on timestamps, and on the flags of services, serve the polls of changed rows.
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
    Text,
    UniqueConstraint,
)

from scheduler.db.tables.columns import (
    IPAddress,
    MediumText,
    booleans,
    columns,
    index,
    integers,
    main_table,
    strings,
    uuids,
)


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
