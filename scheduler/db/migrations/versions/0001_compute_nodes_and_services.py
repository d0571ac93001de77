"""Create the compute nodes and the services."""

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

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_compute_nodes()
    _create_services()


def _create_compute_nodes() -> None:
    create_main_table(
        "compute_nodes",
        *integers("service_id"),
        *strings("host"),
        *uuids("uuid"),
        *integers("vcpus", "memory_mb", "local_gb", required=True),
        *integers("vcpus_used", "memory_mb_used", "local_gb_used", required=True),
        *columns(MEDIUM_TEXT, "hypervisor_type", "cpu_info", required=True),
        *integers("hypervisor_version", required=True),
        *strings("hypervisor_hostname"),
        *integers("free_ram_mb", "free_disk_gb", "disk_available_least"),
        *integers("current_workload", "running_vms"),
        *columns(IP_ADDRESS, "host_ip"),
        *columns(sa.Text(), "supported_instances", "pci_stats", "metrics"),
        *columns(sa.Text(), "extra_resources", "stats", "numa_topology"),
        *columns(
            sa.Float(), "ram_allocation_ratio", "cpu_allocation_ratio", "disk_allocation_ratio"
        ),
        *integers("mapped"),
        sa.UniqueConstraint(
            "host",
            "hypervisor_hostname",
            "deleted",
            name="uniq_compute_nodes0host0hypervisor_hostname0deleted",
        ),
        sa.Index("compute_nodes_uuid_idx", "uuid", unique=True),
        index("compute_nodes", "updated_at"),
        index("compute_nodes", "created_at"),
        index("compute_nodes", "deleted_at"),
        index("compute_nodes", "deleted", "id"),
    )


def _create_services() -> None:
    create_main_table(
        "services",
        *uuids("uuid"),
        *strings("host", "binary", "topic"),
        *integers("report_count", required=True),
        *booleans("disabled", "forced_down"),
        *strings("disabled_reason"),
        *columns(sa.DateTime(), "last_seen_up"),
        *integers("version"),
        sa.UniqueConstraint("host", "topic", "deleted", name="uniq_services0host0topic0deleted"),
        sa.UniqueConstraint("host", "binary", "deleted", name="uniq_services0host0binary0deleted"),
        sa.Index("services_uuid_idx", "uuid", unique=True),
        index("services", "updated_at"),
        index("services", "created_at"),
        index("services", "deleted_at"),
        index("services", "binary", "deleted", "id"),
        index("services", "deleted", "disabled"),
        index("services", "deleted", "forced_down"),
    )
