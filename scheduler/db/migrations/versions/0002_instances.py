"""Create the instances and what hangs on them."""

from typing import Any

import sqlalchemy as sa

from scheduler.db.migrations.schema import (
    IP_ADDRESS,
    MEDIUM_TEXT,
    booleans,
    columns,
    create_main_table,
    index,
    integers,
    strings,
    uuids,
)

revision = "0002"
down_revision = "0001"

LOCKED_BY = sa.Enum("owner", "admin", name="instances0locked_by")


def upgrade() -> None:
    _create_instances()
    _create_instance_extra()
    _create_instance_faults()
    _create_metadata()
    _create_block_device_mapping()


def _create_instances() -> None:
    create_main_table(
        "instances",
        *uuids("uuid", required=True),
        *strings("user_id", "project_id", "image_ref", "kernel_id", "ramdisk_id", "key_name"),
        *strings("vm_state", "task_state", "hostname", "display_name", "display_description"),
        *strings("host", "node", "reservation_id", "availability_zone", "os_type", "architecture"),
        *strings("vm_mode", "root_device_name", "default_ephemeral_device"),
        *strings("default_swap_device", "config_drive", "cell_name"),
        *columns(MEDIUM_TEXT, "key_data", "user_data", "launched_on"),
        *integers("launch_index", "power_state", "memory_mb", "vcpus", "root_gb", "ephemeral_gb"),
        *integers("instance_type_id", "progress", "internal_id", "cleaned"),
        *columns(sa.BigInteger(), "compute_id"),
        *columns(sa.DateTime(), "launched_at", "terminated_at"),
        *booleans("locked", "auto_disk_config", "shutdown_terminate", "disable_terminate"),
        *booleans("hidden"),
        *columns(LOCKED_BY, "locked_by"),
        *columns(IP_ADDRESS, "access_ip_v4", "access_ip_v6"),
        *uuids("ephemeral_key_uuid"),
        sa.UniqueConstraint("uuid", name="uniq_instances0uuid"),
        *_instances_indexes(),
    )


def _instances_indexes() -> list[sa.Index]:
    return [
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
    ]


def _instance_uuid(*, required: bool = False) -> sa.Column[Any]:
    target = sa.ForeignKey("instances.uuid")
    return sa.Column("instance_uuid", sa.String(36), target, nullable=not required)


def _create_instance_extra() -> None:
    create_main_table(
        "instance_extra",
        _instance_uuid(required=True),
        *columns(sa.Text(), "numa_topology", "pci_requests", "flavor", "vcpu_model"),
        *columns(sa.Text(), "migration_context", "keypairs", "device_metadata"),
        *columns(sa.Text(), "trusted_certs", "resources", "vpmems"),
        sa.Index("instance_extra_idx", "instance_uuid"),
    )


def _create_instance_faults() -> None:
    create_main_table(
        "instance_faults",
        _instance_uuid(),
        *integers("code", required=True),
        *strings("message", "host"),
        *columns(MEDIUM_TEXT, "details"),
        index("instance_faults", "host"),
        index("instance_faults", "instance_uuid", "deleted", "created_at"),
    )


def _create_metadata() -> None:
    create_main_table(
        "instance_metadata",
        _instance_uuid(),
        *strings("key", "value"),
        index("instance_metadata", "instance_uuid"),
    )
    create_main_table(
        "instance_system_metadata",
        _instance_uuid(required=True),
        *strings("key", required=True),
        *strings("value"),
        index("instance_system_metadata", "instance_uuid"),
    )


def _create_block_device_mapping() -> None:
    name = "block_device_mapping"
    create_main_table(
        name,
        _instance_uuid(),
        *uuids("uuid", "snapshot_id", "volume_id", "image_id", "attachment_id"),
        *uuids("encryption_secret_uuid"),
        *strings("source_type", "destination_type", "guest_format", "device_type", "disk_bus"),
        *strings("device_name", "tag", "volume_type"),
        *integers("boot_index", "volume_size"),
        *booleans("delete_on_termination", "no_device", "encrypted"),
        *columns(MEDIUM_TEXT, "connection_info"),
        sa.Column("encryption_format", sa.String(128)),
        sa.Column("encryption_options", sa.String(4096)),
        sa.UniqueConstraint("uuid", name="uniq_block_device_mapping0uuid"),
        index(name, "instance_uuid"),
        index(name, "instance_uuid", "device_name"),
        index(name, "instance_uuid", "volume_id"),
        index(name, "volume_id"),
        index(name, "snapshot_id"),
    )
