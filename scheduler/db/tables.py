"""Every table, and the *metadata* that holds them all.

One schema usable on one database: Nova's 2026 columns (reference page database, sections 3
and 4), plus indexes that make reading only the changes cheap, plus this project's own tables.
"""

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine

metadata = sa.MetaData()

STRING, UUID = sa.String(255), sa.String(36)
#: Text of up to 16 MiB where plain TEXT is only 64 KiB.
MediumText = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

#: Names are compared byte by byte on every engine, as SQLite and PostgreSQL do anyway; emoji fit.
OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


class IPAddress(TypeDecorator[str]):
    """An IPv4 or IPv6 address, always text in Python; ``inet`` on PostgreSQL."""

    impl = sa.String(39)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.INET())
        return dialect.type_descriptor(sa.String(39))

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else str(value)


class _SqliteTime(sqlite.DATETIME):
    """SQLite keeps a text in any column; one that is no time is read as :data:`NO_TIME`."""

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        parse: Any = super().result_processor(dialect, coltype)

        def parsed(value: Any) -> datetime.datetime | None:
            try:
                return parse(value)
            except (TypeError, ValueError):
                return NO_TIME

        return parsed


NO_TIME = datetime.datetime.min
TIME = sa.DateTime().with_variant(_SqliteTime(), "sqlite")


def own_table(
    name: str,
    *items: SchemaItem,
    unique: str = "",
    indexes: str = "",
    key: Any = sa.Integer,
    **options: Any,
) -> sa.Table:
    """A table of this project's own: ``id`` of type *key*, then *items*.

    *unique* and *indexes* list columns, ``a, b c`` for one on a and one on b and c; their names
    are made of them.
    """
    uniques = [each.split() for each in unique.split(", ") if each]
    indexed = [each.split() for each in indexes.split(", ") if each]
    return sa.Table(
        name,
        metadata,
        sa.Column("id", key, primary_key=True),
        *items,
        *(sa.UniqueConstraint(*each, name="0".join((f"uniq_{name}", *each))) for each in uniques),
        *(sa.Index("_".join((name, *each, "idx")), *each) for each in indexed),
        **OPTIONS,
        **options,
    )


def api_table(name: str, *items: SchemaItem, **keys: str) -> sa.Table:
    """A table of the API layout, with ``created_at`` and ``updated_at`` (naive UTC)."""
    return own_table(name, *columns(TIME, "created_at updated_at"), *items, **keys)


def main_table(name: str, *items: SchemaItem, **keys: str) -> sa.Table:
    """A table of the main layout: ``deleted`` is 0 while the row lives, and then its own id."""
    deletion = (*columns(TIME, "deleted_at"), *columns(sa.Integer, "deleted"))
    return api_table(name, *deletion, *items, **keys)


def columns(kind: Any, names: str, *, required: bool = False) -> list[sa.Column[Any]]:
    """One column of type *kind* for each of the *names*."""
    return [sa.Column(name, kind, nullable=not required) for name in names.split()]


def reference(name: str, target: str, *, required: bool = True) -> sa.Column[Any]:
    """A column with the id or uuid of a row elsewhere."""
    return sa.Column(name, sa.ForeignKey(target), nullable=not required)


# --- main layout (section 3); indexes on timestamps and flags serve polls of changed rows -------

compute_nodes = main_table(
    "compute_nodes",
    *columns(sa.Integer, "service_id free_ram_mb free_disk_gb disk_available_least"),
    *columns(STRING, "host hypervisor_hostname"),
    *columns(UUID, "uuid"),
    *columns(sa.Integer, "vcpus memory_mb local_gb", required=True),
    *columns(
        sa.Integer, "vcpus_used memory_mb_used local_gb_used hypervisor_version", required=True
    ),
    *columns(MediumText, "hypervisor_type cpu_info", required=True),
    *columns(sa.Integer, "current_workload running_vms mapped"),
    *columns(IPAddress, "host_ip"),
    *columns(sa.Text, "supported_instances pci_stats metrics extra_resources stats numa_topology"),
    *columns(sa.Float, "ram_allocation_ratio cpu_allocation_ratio disk_allocation_ratio"),
    sa.Index("compute_nodes_uuid_idx", "uuid", unique=True),
    unique="host hypervisor_hostname deleted",
    indexes="updated_at, created_at, deleted_at, deleted id",
)

services = main_table(
    "services",
    *columns(UUID, "uuid"),
    *columns(STRING, "host binary topic disabled_reason"),
    *columns(sa.Integer, "report_count", required=True),
    *columns(sa.Boolean, "disabled forced_down"),
    *columns(TIME, "last_seen_up"),
    *columns(sa.Integer, "version"),
    sa.Index("services_uuid_idx", "uuid", unique=True),
    unique="host topic deleted, host binary deleted",
    indexes="updated_at, created_at, deleted_at, "
    "binary deleted id, deleted disabled, deleted forced_down",
)

instances = main_table(
    "instances",
    *columns(UUID, "uuid", required=True),
    *columns(STRING, "user_id project_id image_ref kernel_id ramdisk_id key_name"),
    *columns(STRING, "vm_state task_state hostname display_name display_description"),
    *columns(STRING, "host node reservation_id availability_zone os_type architecture"),
    *columns(STRING, "vm_mode root_device_name default_ephemeral_device"),
    *columns(STRING, "default_swap_device config_drive cell_name"),
    *columns(MediumText, "key_data user_data launched_on"),
    *columns(sa.Integer, "launch_index power_state memory_mb vcpus root_gb ephemeral_gb"),
    *columns(sa.Integer, "instance_type_id progress internal_id cleaned"),
    *columns(sa.BigInteger, "compute_id"),
    *columns(TIME, "launched_at terminated_at"),
    *columns(sa.Boolean, "locked auto_disk_config shutdown_terminate disable_terminate hidden"),
    *columns(sa.Enum("owner", "admin", name="instances0locked_by"), "locked_by"),
    *columns(IPAddress, "access_ip_v4 access_ip_v6"),
    *columns(UUID, "ephemeral_key_uuid"),
    unique="uuid",
    indexes="updated_at project_id, created_at, deleted_at, project_id, project_id deleted, "
    "deleted created_at, terminated_at launched_at, reservation_id, host node deleted, "
    "uuid deleted, host deleted cleaned, task_state updated_at, compute_id deleted",
)

instance_extra = main_table(
    "instance_extra",
    reference("instance_uuid", "instances.uuid"),
    *columns(sa.Text, "numa_topology pci_requests flavor vcpu_model"),
    *columns(sa.Text, "migration_context keypairs device_metadata trusted_certs resources vpmems"),
    sa.Index("instance_extra_idx", "instance_uuid"),
)

instance_faults = main_table(
    "instance_faults",
    reference("instance_uuid", "instances.uuid", required=False),
    *columns(sa.Integer, "code", required=True),
    *columns(STRING, "message host"),
    *columns(MediumText, "details"),
    indexes="host, instance_uuid deleted created_at",
)

instance_metadata = main_table(
    "instance_metadata",
    reference("instance_uuid", "instances.uuid", required=False),
    *columns(STRING, "key value"),
    indexes="instance_uuid",
)

instance_system_metadata = main_table(
    "instance_system_metadata",
    reference("instance_uuid", "instances.uuid"),
    *columns(STRING, "key", required=True),
    *columns(STRING, "value"),
    indexes="instance_uuid",
)

block_device_mapping = main_table(
    "block_device_mapping",
    reference("instance_uuid", "instances.uuid", required=False),
    *columns(UUID, "uuid snapshot_id volume_id image_id attachment_id encryption_secret_uuid"),
    *columns(STRING, "source_type destination_type guest_format device_type disk_bus"),
    *columns(STRING, "device_name tag volume_type"),
    *columns(sa.Integer, "boot_index volume_size"),
    *columns(sa.Boolean, "delete_on_termination no_device encrypted"),
    *columns(MediumText, "connection_info"),
    sa.Column("encryption_format", sa.String(128)),
    sa.Column("encryption_options", sa.String(4096)),
    unique="uuid",
    indexes="instance_uuid, instance_uuid device_name, instance_uuid volume_id, volume_id, "
    "snapshot_id",
)

# --- API layout: rows are really deleted (section 4) -------------------------------------------

aggregates = api_table(
    "aggregates",
    *columns(UUID, "uuid"),
    *columns(STRING, "name"),
    sa.UniqueConstraint("name", name="uniq_aggregate0name"),
    sa.Index("aggregate_uuid_idx", "uuid"),
    indexes="updated_at",
)

aggregate_hosts = api_table(
    "aggregate_hosts",
    *columns(STRING, "host"),
    reference("aggregate_id", "aggregates.id"),
    unique="host aggregate_id",
    indexes="aggregate_id, updated_at",
)

aggregate_metadata = api_table(
    "aggregate_metadata",
    reference("aggregate_id", "aggregates.id"),
    *columns(STRING, "key value", required=True),
    unique="aggregate_id key",
    indexes="key, updated_at",
)

instance_groups = api_table(
    "instance_groups",
    *columns(STRING, "user_id project_id name"),
    *columns(UUID, "uuid", required=True),
    unique="uuid",
)

instance_group_member = api_table(
    "instance_group_member",
    *columns(STRING, "instance_uuid"),
    reference("group_id", "instance_groups.id"),
    sa.Index("instance_group_member_instance_idx", "instance_uuid"),
    indexes="group_id",
)

instance_group_policy = api_table(
    "instance_group_policy",
    *columns(STRING, "policy"),
    reference("group_id", "instance_groups.id"),
    *columns(sa.Text, "rules"),
    indexes="policy, group_id",
)

flavors = api_table(
    "flavors",
    *columns(STRING, "name flavorid", required=True),
    *columns(sa.Integer, "memory_mb vcpus swap", required=True),
    *columns(sa.Integer, "root_gb ephemeral_gb vcpu_weight"),
    *columns(sa.Float, "rxtx_factor"),
    *columns(sa.Boolean, "disabled is_public"),
    *columns(sa.Text, "description"),
    unique="name, flavorid",
)

flavor_extra_specs = api_table(
    "flavor_extra_specs",
    reference("flavor_id", "flavors.id"),
    *columns(STRING, "key", required=True),
    *columns(STRING, "value"),
    unique="flavor_id key",
)

flavor_projects = api_table(
    "flavor_projects",
    reference("flavor_id", "flavors.id"),
    *columns(STRING, "project_id", required=True),
    unique="flavor_id project_id",
)

request_specs = api_table(
    "request_specs",
    *columns(UUID, "instance_uuid", required=True),
    *columns(MediumText, "spec", required=True),
    unique="instance_uuid",
)

build_requests = api_table(
    "build_requests",
    *columns(STRING, "project_id", required=True),
    *columns(UUID, "instance_uuid"),
    *columns(MediumText, "instance block_device_mappings"),
    *columns(sa.Text, "tags"),
    unique="instance_uuid",
    indexes="project_id",
)

cell_mappings = api_table(
    "cell_mappings",
    *columns(UUID, "uuid", required=True),
    *columns(STRING, "name"),
    *columns(sa.Text, "transport_url database_connection"),
    *columns(sa.Boolean, "disabled"),
    unique="uuid",
)

instance_mappings = api_table(
    "instance_mappings",
    *columns(UUID, "instance_uuid", required=True),
    reference("cell_id", "cell_mappings.id", required=False),
    *columns(STRING, "project_id", required=True),
    *columns(sa.Boolean, "queued_for_delete"),
    *columns(STRING, "user_id"),
    unique="instance_uuid",
    indexes="cell_id, project_id, user_id project_id",
)

host_mappings = api_table(
    "host_mappings",
    reference("cell_id", "cell_mappings.id"),
    *columns(STRING, "host", required=True),
    unique="host",
    indexes="cell_id",
)

# --- tables of this project's own ---------------------------------------------------------------

# Claims (docs/decisions/0007): *generation* of a host is a token that never comes again, which a
# claim compares and swaps; a claim has the one that it made, and the *previous* one.
claim_hosts = own_table(
    "claim_hosts",
    *columns(STRING, "host node", required=True),
    *columns(sa.BigInteger, "generation", required=True),
    unique="host node",
)

claims = own_table(
    "claims",
    *columns(UUID, "consumer_uuid", required=True),
    *columns(STRING, "host node request_id", required=True),
    *columns(sa.BigInteger, "generation", required=True),
    *columns(sa.BigInteger, "previous"),
    *columns(sa.Integer, "vcpus memory_mb disk_gb", required=True),
    *columns(MediumText, "numa_topology pci_requests answer"),
    *columns(sa.Integer, "flavor_id"),
    # Where the instance was when another host was claimed for it.
    *columns(STRING, "source_host"),
    *columns(TIME, "created_at expires_at", required=True),
    *columns(TIME, "closed_at"),
    sqlite_autoincrement=True,  # the id of a claim is never used again
    unique="consumer_uuid request_id",  # a request has one answer for each of its instances
    indexes="closed_at id, host node generation",
)

decisions = own_table(
    "decisions",
    *columns(TIME, "recorded_at", required=True),
    *columns(STRING, "daemon", required=True),
    *columns(STRING, "request_id"),
    *columns(sa.String(32), "outcome", required=True),
    *columns(MediumText, "record", required=True),  # JSON in the form of docs/explain.md
    sqlite_autoincrement=True,  # ids tell which decisions are older
    indexes="request_id, recorded_at",
)

decision_instances = own_table(
    "decision_instances",
    reference("decision_id", "decisions.id"),
    *columns(UUID, "instance_uuid", required=True),
    indexes="instance_uuid, decision_id",
)

# Appended by triggers (migration.py): which row of what kind has changed, come or gone.
changes = own_table(
    "changes",
    *columns(sa.String(32), "kind", required=True),
    *columns(sa.BigInteger, "row_id", required=True),
    *columns(TIME, "changed_at", required=True),
    key=sa.BigInteger().with_variant(sa.Integer, "sqlite"),
    sqlite_autoincrement=True,  # the id of an entry is never used again
)
