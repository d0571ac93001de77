"""What tests take for the layout of today is what Nova's own tools make."""

import json

import pytest
import sqlalchemy as sa

from scheduler.cli import app
from scheduler.db import layout, migration
from scheduler.errors import DatabaseNotReady
from tests import nova_layouts
from tests.nova_layouts import API, CELL, TODAY
from tests.world import databases
from tests.world.deployment import render


@pytest.mark.parametrize("role", [CELL, API])
def test_columns_of_today(nova_databases, role):
    url = nova_databases.cell_url if role == CELL else nova_databases.api_url
    expected = nova_layouts.metadata(TODAY, role).tables
    with databases.transaction(url) as connection:
        inspector = sa.inspect(connection)
        found = {
            name: {column["name"] for column in inspector.get_columns(name)} for name in expected
        }
        (version,) = connection.exec_driver_sql("SELECT version_num FROM alembic_version").one()
    assert found == {name: set(table.c.keys()) for name, table in expected.items()}
    assert version == nova_layouts.VERSIONS[TODAY, role][1]


def test_nothing_is_missing(nova_databases):
    for url, of_interest in (
        (nova_databases.cell_url, layout.CELL_TABLES),
        (nova_databases.api_url, layout.API_TABLES),
    ):
        with databases.opened(url) as database:
            assert database.layout.is_nova
            assert database.layout.missing(of_interest) == []


def test_db_check_finds_every_cell(nova_databases, tmp_path, capsys):
    config = tmp_path / "nova.conf"
    settings = {
        "api_database": {"connection": nova_databases.api_url},
        "database": {"connection": nova_databases.cell_url},
    }
    config.write_text(render(settings), encoding="utf-8")
    assert app.main(["--config-file", str(config), "db", "check", "-f", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    cells = [row["named_by"].split()[1] for row in rows if row["named_by"].startswith("cell ")]
    assert cells == list(nova_databases.cells)
    assert {row["usable"] for row in rows} == {"yes"}
    assert [row["missing"] for row in rows if row["missing"]] == []


def test_what_nova_made_is_used_but_not_changed(nova_databases):
    with databases.opened(nova_databases.cell_url) as database:
        migration.check_ready(database)
        with pytest.raises(DatabaseNotReady, match="alembic_version"):
            migration.sync(database)
