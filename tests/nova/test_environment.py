"""The Nova that the tests here run: the one that the reference pages speak of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy

from scheduler.db import migration
from scheduler.db.database import Database
from scheduler.errors import DatabaseNotReady
from tests.nova import environment
from tests.nova.databases import NovaDatabases

ALEMBIC_VERSION = sqlalchemy.text("SELECT version_num FROM alembic_version")


def version_of(url: str) -> str:
    database = Database(url)
    try:
        with database.read() as connection:
            return str(connection.execute(ALEMBIC_VERSION).scalar_one())
    finally:
        database.dispose()


def test_the_tables_are_those_of_the_reference(nova_databases: NovaDatabases) -> None:
    assert version_of(nova_databases.api_url) == "cdeec0c85668"
    versions = {version_of(url) for url in nova_databases.cells.values()}
    assert versions == {"ab450ba04102"}


def test_what_nova_made_is_used_but_not_changed(nova_databases: NovaDatabases) -> None:
    database = Database(nova_databases.cell_url)
    try:
        migration.check_ready(database)
        with pytest.raises(DatabaseNotReady, match="alembic_version"):
            migration.sync(database)
    finally:
        database.dispose()


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")], ids=["locally", "CI"]
)
def test_without_packages_it_skips_but_fails_the_ci(ci: str, outcome: str, tmp_path: Path) -> None:
    """The whole way, with an index that has nothing."""
    test = tmp_path / "test_one.py"
    test.write_text("def test_one(nova_python): pass\n", encoding="utf-8")
    without_index = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.nova.fixtures", "-ra", str(test)],
        cwd=environment.CHECKOUT,
        env={
            **os.environ,
            **without_index,
            environment.VARIABLE: str(tmp_path / "venv"),
            "CI": ci,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout + done.stderr
    assert "pip cannot install" in done.stdout
