"""The tests of database claims once more, on MariaDB and PostgreSQL."""

import pytest

from tests.functional.db.conftest import database, synced_mariadb, synced_postgresql
from tests.unit.claims.conftest import clock, fleet, worker

pytest.register_assert_rewrite("tests.unit.claims")

__all__ = ["clock", "database", "fleet", "synced_mariadb", "synced_postgresql", "worker"]
