from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateTable

from scheduler.db import tables

MAIN = {
    "compute_nodes",
    "services",
    "instances",
    "instance_extra",
    "instance_faults",
    "instance_metadata",
    "instance_system_metadata",
    "block_device_mapping",
}
API = {
    "aggregates",
    "aggregate_hosts",
    "aggregate_metadata",
    "instance_groups",
    "instance_group_member",
    "instance_group_policy",
    "flavors",
    "flavor_extra_specs",
    "flavor_projects",
    "request_specs",
    "build_requests",
    "instance_mappings",
    "host_mappings",
    "cell_mappings",
}
OWN = {"change_counters", "claim_hosts", "claims", "decision_instances", "decisions"}


def test_every_table_stands_under_its_name():
    assert set(tables.metadata.tables) == MAIN | API | OWN
    for name, table in tables.metadata.tables.items():
        assert getattr(tables, name) is table
        assert name in tables.__all__


@pytest.mark.parametrize("name", sorted(MAIN | API))
def test_layout(name):
    columns = tables.metadata.tables[name].c
    assert {"id", "created_at", "updated_at"} <= set(columns.keys())
    assert ("deleted" in columns) is ("deleted_at" in columns) is (name in MAIN)


@pytest.mark.parametrize(
    ("name", "constraint", "columns"),
    [
        (
            "compute_nodes",
            "uniq_compute_nodes0host0hypervisor_hostname0deleted",
            ["host", "hypervisor_hostname", "deleted"],
        ),
        ("services", "uniq_services0host0topic0deleted", ["host", "topic", "deleted"]),
        ("services", "uniq_services0host0binary0deleted", ["host", "binary", "deleted"]),
        ("aggregates", "uniq_aggregate0name", ["name"]),
    ],
)
def test_named_constraints(name, constraint, columns):
    found = {each.name: each for each in tables.metadata.tables[name].constraints}
    unique = found[constraint]
    assert isinstance(unique, sa.UniqueConstraint)
    assert [column.name for column in unique.columns] == columns


@pytest.mark.parametrize(
    ("dialect", "parts"),
    [
        (mysql.dialect(), ["cpu_info MEDIUMTEXT NOT NULL", "host_ip VARCHAR(39)", "stats TEXT"]),
        (postgresql.dialect(), ["cpu_info TEXT NOT NULL", "host_ip INET", "stats TEXT"]),
        (sqlite.dialect(), ["cpu_info TEXT NOT NULL", "host_ip VARCHAR(39)", "stats TEXT"]),
    ],
    ids=["mysql", "postgresql", "sqlite"],
)
def test_types_by_engine(dialect, parts):
    text = str(CreateTable(tables.compute_nodes).compile(dialect=dialect))
    assert [part for part in parts if part not in text] == []


def test_words_of_mysql_are_quoted():
    text = str(CreateTable(tables.services).compile(dialect=mysql.dialect()))
    assert "`binary` VARCHAR(255)" in text
    assert "COLLATE utf8mb4_bin" in text


@pytest.mark.parametrize("name", ["compute_nodes", "services", "instances"])
@pytest.mark.parametrize("column", ["created_at", "updated_at", "deleted_at"])
def test_changes_are_found_by_index(name, column):
    leading = {next(iter(index.columns)).name for index in tables.metadata.tables[name].indexes}
    assert column in leading
