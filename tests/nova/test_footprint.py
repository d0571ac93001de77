"""What the scheduler leaves in databases that Nova made: its own service record, or nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy
from sqlalchemy.engine import make_url

from tests.nova.databases import NovaDatabases
from tests.nova.deployed import Deployed, a_uuid, deployed
from tests.servers.mariadb import MariaDB
from tests.servers.private import unique_name
from tests.servers.rabbitmq import RabbitMQ

OWN = "nova-scheduler"
#: What an operator writes into a cell's mapping so that each service comes with its own account.
TEMPLATE = "{{scheme}}://{{username}}:{{password}}@{{hostname}}:{{port}}/{database}?{{query}}"


def contents(databases: NovaDatabases) -> dict[str, object]:
    """A checksum per table, and of `services` the rows that are not the scheduler's."""
    found: dict[str, object] = {}
    for url in (databases.api_url, *databases.cells.values()):
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            tables = sorted(sqlalchemy.inspect(connection).get_table_names())
            names = ", ".join(name for name in tables if name != "services")
            found |= dict(connection.exec_driver_sql(f"CHECKSUM TABLE {names}").all())
            if "services" in tables:
                others = f"SELECT * FROM services WHERE `binary` != '{OWN}'"
                found[url] = connection.exec_driver_sql(others).all()
        engine.dispose()
    return found


def work(world: Deployed) -> None:
    """Decisions of several kinds, a refusal, and messages."""
    number = world.add_aggregate(a_uuid(), {"availability_zone": "zone"}, "f1")
    before = contents(world.databases)
    for _ in range(5):
        world.select(count=3, alternates=True)
        world.hosts(zone="zone")
    assert world.nova.do("judge.start") == 2
    refused = {"uuids": [a_uuid()], "zone": "nowhere"}
    verdict = world.nova.do("judge.judged", demand=refused)
    assert verdict == {"hosts": None, "complaints": []}
    world.nova.do("calls.update_aggregates", numbers=[number])
    world.nova.do("calls.sync_instance_info", host="f1", uuids=[])
    world.daemon.wait_log("Successfully synced instances from host 'f1'")
    assert contents(world.databases) == before


def fill(world: Deployed) -> None:
    """A host in each cell."""
    world.add_hosts("cell1", "f1")
    world.add_hosts("cell2", "f2")


def test_only_its_own_service_record_is_written(world: Deployed) -> None:
    fill(world)
    work(world)
    record = world.nova.do("fleet.service", cell="cell1", host="controller", binary=OWN)
    assert record == {"topic": "scheduler", "is_up": True, "disabled": False, "version": 74}


@pytest.fixture
def reader(mariadb: MariaDB, nova_databases: NovaDatabases) -> Iterator[str]:
    """An account that may only read, which the mapping of the second cell takes over."""
    user = unique_name("reader")
    databases = [make_url(url).database for url in of_all(nova_databases)]
    mariadb.create_account(user, [f"SELECT ON {name}.*" for name in databases])
    mapped = nova_databases.cells["cell2"]
    nova_databases.map_cell("cell2", TEMPLATE.format(database=make_url(mapped).database))
    nova_databases.empty()
    yield user
    nova_databases.empty()  # the other test of this file may come later
    nova_databases.map_cell("cell2", mapped)
    mariadb.drop_account(user)


def of_all(databases: NovaDatabases) -> list[str]:
    """The URLs of the API database and of every cell."""
    return [databases.api_url, *databases.cells.values()]


def test_an_account_that_may_only_read_is_enough(
    reader: str,
    nova_databases: NovaDatabases,
    rabbitmq: RabbitMQ,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    api, cell, _ = (
        make_url(url).set(username=reader).render_as_string(hide_password=False)
        for url in of_all(nova_databases)
    )
    settings = {
        "database": {"connection": cell, "read_only": True},
        "api_database": {"connection": api},
    }
    folder = tmp_path_factory.mktemp("reading")
    with deployed(nova_databases, rabbitmq, folder, settings=settings) as world:
        fill(world)
        work(world)
        assert world.hosts(destination={"cell": "cell2"}) == ["f2"]
        assert world.nova.do("fleet.service", cell="cell1", host="controller", binary=OWN) is None
