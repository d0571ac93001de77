"""The scheduler on databases laid out as Nova's: cells, rights, and what is written."""

import re
import threading
import uuid

import pytest
from sqlalchemy.engine import make_url

from scheduler import errors
from scheduler.concurrency import EVENTLET, THREADING
from tests.nova_layouts import NEWTON
from tests.novas import Nova
from tests.servers import mariadb as mariadb_server
from tests.servers.fixtures import require
from tests.servers.mariadb import MariaDB
from tests.servers.private import unique_name
from tests.waiting import wait_until
from tests.world import databases, fleet
from tests.world.bus import a_context, scheduler_api
from tests.world.deployment import CommandFailed

BIG = {
    "memory_mb": 2**30,
    "free_ram_mb": 2**30,
    "vcpus": 2**16,
    "local_gb": 2**20,
    "free_disk_gb": 2**20,
}
HALF = {name: number // 2 for name, number in BIG.items()}


def settings(nova, **database):
    return {
        "DEFAULT": {"service_down_time": 3600, "report_interval": 1},
        "api_database": {"connection": nova.urls["api"]},
        "database": database,
    }


def answer(api, **fields):
    """Host and cell that a request gets, or the name of the error."""
    own = str(uuid.uuid4())
    try:
        ((chosen, *_),) = api.select_destinations(
            *(a_context(), fleet.a_spec(own, **fields), [own]),
            return_objects=True,
            return_alternates=True,
        )
    except errors.NovaException as error:
        return type(error).__name__
    return chosen.service_host, chosen.cell_uuid


@pytest.fixture
def nova(mariadb):
    """cell0, a cell reached by a template, and a disabled one, on the server of all tests."""
    names = []

    def make_url():
        names.append(mariadb.create_database())
        return mariadb.url(names[-1])

    nova = Nova(make_url)
    nova.add_cell("a", [])
    nova.add_hosts("a", ["a1"], **HALF)
    nova.add_hosts("a", ["a2"])
    own = name_of(nova.urls["a"])
    template = f"{{scheme}}://{{username}}:{{password}}@{{hostname}}:{{port}}/{own}"
    nova.map_cell("a", database_connection=template)
    nova.add_cell("off", [], disabled=True)
    nova.add_hosts("off", ["c1"], **BIG)
    yield nova
    for name in names:
        mariadb.drop_database(name)


def name_of(url):
    return str(make_url(url).database)


class Asking(threading.Thread):
    """Asks again and again until it is told to end; keeps what it was answered."""

    def __init__(self, api):
        super().__init__()
        self._api = api
        self._end = threading.Event()
        self.answers = []

    def run(self):
        while not self._end.is_set():
            self.answers.append(answer(self._api))

    def end(self):
        self._end.set()
        self.join()

    def wait_for(self, host):
        """Return once the newest answer is *host*."""
        count = len(self.answers)
        wait_until(
            lambda: len(self.answers) > count and self.answers[-1][0] == host,
            60,
            lambda: f"{host}: {self.answers[-3:]}",
        )


#: How a cell's server goes, how it comes back, and what is said of the cell.
STOPS = (MariaDB.stop, MariaDB.start, "Failed to get computes for cell")
FALLS_SILENT = (
    MariaDB.pause,
    MariaDB.resume,
    "(Timeout getting|Failed to get) computes for cell",  # whichever notices first
)


@pytest.mark.parametrize(
    ("backend", "outage"),
    [(THREADING, STOPS), (EVENTLET, FALLS_SILENT)],
    ids=["stops-threading", "silent-eventlet"],
)
def test_a_cell_goes_and_comes_back_under_load(
    nova, deployment, transport_url, tmp_path, backend, outage
):
    goes, comes_back, warning = outage
    require(mariadb_server.PROGRAMS)
    with MariaDB() as other:
        on_shared = nova.make_url
        nova.make_url = lambda: other.url(other.create_database())
        nova.add_cell("b", [])
        nova.add_hosts("b", ["b1"], **BIG)
        nova.make_url = on_shared
        options = {**settings(nova), "scheduler": {"cell_timeout_seconds": 2}}
        cloud = deployment(transport_url, nova.urls["cell0"], backend=backend, settings=options)
        scheduler = cloud.start_scheduler().wait_ready()
        with scheduler_api(tmp_path, transport_url) as api:
            assert answer(api) == ("b1", nova.uuids["b"])
            asking = Asking(api)
            asking.start()
            try:
                goes(other)
                asking.wait_for("a1")
                comes_back(other)
                asking.wait_for("b1")
            finally:
                asking.end()
        assert {each[0] for each in asking.answers} == {"a1", "b1"}
        wait_until(lambda: re.search(f"{warning} {nova.uuids['b']}", scheduler.log), 60)
        wait_until(lambda: "answers again" in scheduler.log, 60)
        assert scheduler.terminate() == 0


def everything(nova):
    """Every row of every database, but those of the scheduler's own service."""
    found = {}
    for name, url in nova.urls.items():
        with databases.transaction(url) as connection:
            for (table,) in connection.exec_driver_sql("SHOW TABLES").all():
                rows = connection.exec_driver_sql(f"SELECT * FROM {table}").all()
                found[f"{name}.{table}"] = [row for row in rows if "nova-scheduler" not in row]
    return found


def own_rows(nova):
    query = "SELECT host, report_count, version FROM services WHERE `binary` = 'nova-scheduler'"
    return nova.execute("cell0", query)


def refusal(cloud):
    """The one line with which the scheduler does not start."""
    scheduler = cloud.start_scheduler()
    assert scheduler.wait() != 0
    assert "secret" not in scheduler.log
    (line,) = [each for each in scheduler.log.splitlines() if " error: " in each]
    return line


@pytest.fixture
def account(nova, mariadb):
    """A user that may read everything, the databases by name, and a configuration with it."""
    user, names = unique_name("u"), {name: name_of(url) for name, url in nova.urls.items()}
    mariadb.create_account(user, [f"SELECT ON {each}.*" for each in names.values()])
    main, api_url = (
        make_url(nova.urls[name]).set(username=user).render_as_string(hide_password=False)
        for name in ("cell0", "api")
    )
    yield user, names, main, {**settings(nova), "api_database": {"connection": api_url}}
    mariadb.drop_account(user)


def test_the_rights_that_are_needed(nova, account, mariadb, deployment, transport_url, tmp_path):
    """First for reading only, then for its own service as well."""
    user, names, main, options = account
    before = everything(nova)
    cloud = deployment(transport_url, main, settings=options)

    assert re.search(r"\[database\] connection: .*read_only", refusal(cloud))
    for is_read_only in (True, False):
        # It is for a database that may be written; here the account could not.
        discovery = {"discover_hosts_in_cells_interval": 1 if is_read_only else -1}
        cloud.configure({"database": {"read_only": is_read_only}, "scheduler": discovery})
        if not is_read_only:
            mariadb.grant(f"INSERT, UPDATE ON {names['cell0']}.services", user)
        with pytest.raises(CommandFailed, match=r"nova-manage|read_only"):
            cloud.command("nova-scheduler-manage", "db", "sync")
        scheduler = cloud.start_scheduler().wait_ready()
        with scheduler_api(tmp_path, transport_url) as api:
            assert answer(api) == ("a1", nova.uuids["a"])
            assert answer(api, ignore_hosts=["a1", "a2"]) == "NoValidHost"
        if not is_read_only:
            wait_until(lambda: own_rows(nova)[0][1] > 0, 60, "a heartbeat")
        assert [row[0] for row in own_rows(nova)] == ["controller"] * (not is_read_only)
        assert "discovery of hosts" not in scheduler.log
        assert scheduler.terminate() == 0
    assert everything(nova) == before


def test_new_hosts_are_mapped(nova, account, mariadb, deployment, transport_url):
    """With an account that has just the rights for it; one host was mapped by somebody else."""
    user, names, main, options = account
    mariadb.grant(f"INSERT, UPDATE ON {names['cell0']}.services", user)
    mariadb.grant(f"INSERT ON {names['api']}.host_mappings", user)
    for name in ("a", "off"):
        template = f"{{scheme}}://{{username}}:{{password}}@{{hostname}}:{{port}}/{names[name]}"
        nova.map_cell(name, database_connection=template)
        mariadb.grant(f"UPDATE ON {names[name]}.compute_nodes", user)
    number = nova.execute("api", "SELECT id FROM cell_mappings WHERE name = 'a'")[0][0]
    nova.execute("api", f"INSERT INTO host_mappings (host, cell_id) VALUES ('a2', {number})")
    options["scheduler"] = {"discover_hosts_in_cells_interval": 1}
    scheduler = deployment(transport_url, main, settings=options).start_scheduler().wait_ready()

    def mapped():
        return nova.execute("api", "SELECT host FROM host_mappings ORDER BY host")

    wait_until(lambda: mapped() == [("a1",), ("a2",), ("c1",)], 60, "the first hosts")
    nova.add_hosts("a", ["a3"])
    wait_until(lambda: ("a3",) in mapped(), 60, "the new host")
    wait_until(
        lambda: not nova.execute("a", "SELECT 1 FROM compute_nodes WHERE mapped < 1"), 30, "notes"
    )
    assert "Error during" not in scheduler.log
    assert scheduler.terminate() == 0


def test_newtons_layout(mariadb, deployment, transport_url, tmp_path):
    nova = Nova(lambda: mariadb.url(mariadb.create_database()), NEWTON)
    nova.add_main(["h1", "h2"])
    nova.add_aggregate(1, "old", "h1", "main")
    nova.execute(
        "main",
        "INSERT INTO aggregate_metadata (aggregate_id, `key`, value, deleted) "
        "VALUES (1, 'availability_zone', 'az', 0)",
    )
    before = everything(nova)
    cloud = deployment(transport_url, nova.urls["main"], settings=settings(nova))
    scheduler = cloud.start_scheduler().wait_ready()
    with scheduler_api(tmp_path, transport_url) as api:
        assert answer(api, availability_zone="az")[0] == "h1"
        assert answer(api, availability_zone="other") == "NoValidHost"
        assert answer(api, ignore_hosts=["h1"])[0] == "h2"
    (line,) = [each for each in scheduler.log.splitlines() if "compute_nodes.mapped" in each]
    assert "is a Nova database (version 334); it lacks 14 tables or columns" in line
    assert scheduler.terminate() == 0
    assert everything(nova) == before
