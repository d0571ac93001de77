"""Which database a table is in, by what is configured and what the databases are."""

import pytest

from scheduler import errors
from scheduler.db import inspection, migration, services
from scheduler.db.databases import Databases
from tests.builders import a_conf
from tests.nova_layouts import NEWTON, TODAY
from tests.novas import Nova

SERVER_AWAY = "mysql+pymysql://u:hidden@127.0.0.1:1/nova"


@pytest.fixture
def configured():
    """Makes the databases of a configuration, and closes them."""
    made = []

    def make(connection, api=None, *, read_only=False):
        conf = a_conf(
            database__connection=connection,
            api_database__connection=api,
            database__read_only=read_only,
            api_database__max_retries=0,
        )
        made.append(Databases.from_conf(conf))
        return made[-1]

    yield make
    for each in made:
        each.dispose()


def test_one_database_of_ours_is_everything(configured, make_url):
    databases = configured(make_url())
    migration.sync(databases.main)
    assert databases.api is databases.main
    assert (databases.has_cells, databases.aggregates_are_in_both) == (False, False)
    (cell,) = databases.cells()
    assert databases.of_cell(cell) is databases.main
    (finding,) = inspection.configured(databases)
    assert (finding.kind, finding.version) == (inspection.OURS, migration.head())
    assert (finding.missing, finding.may_write_service) == ((), True)
    assert finding.line().endswith("; it has everything that is read")


@pytest.mark.parametrize(
    ("release", "has_api", "has_cells", "in_both", "lacks_api"),
    [
        (NEWTON, True, False, True, False),
        (NEWTON, False, False, False, False),
        (TODAY, True, True, False, False),
        (TODAY, False, False, False, True),
    ],
)
def test_novas_databases(configured, make_url, release, has_api, has_cells, in_both, lacks_api):
    nova = Nova(make_url, release)
    nova.add_main(["h1"])
    found = configured(nova.urls["main"], nova.urls["api"] if has_api else None)
    assert (found.has_cells, found.aggregates_are_in_both) == (has_cells, in_both)
    assert found.lacks_api is lacks_api


def test_a_cell_by_a_template(configured, make_url):
    nova = Nova(make_url)
    nova.add_cell("a", ["a1"])
    path = nova.urls["a"].removeprefix("sqlite:///")
    nova.map_cell("a", database_connection=f"{{scheme}}:///{path}")
    databases = configured(nova.urls["cell0"], nova.urls["api"])
    (cell,) = databases.cells()
    with databases.of_cell(cell).read() as connection:
        assert [each.host for each in services.list_all(connection)] == ["a1"]


@pytest.mark.parametrize(
    ("api", "message"),
    [
        (SERVER_AWAY, "[api_database] connection: mysql+pymysql://u:***@"),
        ("sqlite:///{tmp_path}/none.sqlite", "none.sqlite does not exist"),
        ("sqlite:///{main}", "is a Nova database without aggregate"),
    ],
)
def test_a_wrong_api_database_is_one_line(configured, make_url, tmp_path, api, message):
    nova = Nova(make_url)
    main = nova.urls["cell0"]
    nova.execute("cell0", "DROP TABLE aggregates")
    api = api.format(tmp_path=tmp_path, main=main.removeprefix("sqlite:///"))
    _, finding = inspection.configured(configured(main, api))
    text = str(finding.failure)
    assert message in text
    assert "hidden" not in text
    assert "\n" not in text


@pytest.mark.parametrize("api", ["nosuch://u:hidden@h/api", "no url"])
def test_an_api_url_that_cannot_be_used_names_its_option(configured, make_url, api):
    with pytest.raises(errors.ConfigurationError) as caught:
        configured(make_url(), api)
    assert str(caught.value).startswith("Invalid configuration: [api_database] connection: ")
    assert "hidden" not in str(caught.value)


def test_read_only_means_that_nothing_is_written(configured, make_url):
    nova = Nova(make_url)
    nova.add_cell("a", ["a1"])
    databases = configured(nova.urls["cell0"], nova.urls["api"], read_only=True)
    (cell,) = databases.cells()
    for database in (databases.main, databases.api, databases.of_cell(cell)):
        with pytest.raises(errors.DatabaseReadOnly), database.write():
            pass
        with pytest.raises((errors.DatabaseReadOnly, errors.DatabaseNotReady)):
            migration.sync(database)
    main, _api = inspection.configured(databases)
    assert (main.failure, main.may_write_service) == (None, None)


def test_each_cell_is_looked_at(configured, make_url):
    nova = Nova(make_url)
    nova.add_cell("a", ["a1"])
    nova.add_cell("b", ["b1"], url=SERVER_AWAY, disabled=True)
    nova.add_cell("c", ["c1"], url="nosuch://u:hidden@h/c")
    found = inspection.cells(configured(nova.urls["cell0"], nova.urls["api"]))
    failures = {each.place.split()[1]: each.failure for each in found}
    assert [name for name, failure in failures.items() if failure] == ["c", "b"]
    assert [each.place.endswith(", disabled") for each in found] == [False, False, True]
    assert "hidden" not in "".join(each.line() for each in found)
