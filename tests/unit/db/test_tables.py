from __future__ import annotations

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateTable

from scheduler.db import tables


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
