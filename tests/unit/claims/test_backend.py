"""Which claims there are: what is configured, and what is found where nothing is."""

import pytest

from scheduler import drivers
from scheduler.claims import backend
from scheduler.drivers.loading import load_host_manager
from tests.builders import a_conf

FILTER, CHANCE = "filter_scheduler", "chance_scheduler"


class NoReader:
    """Nothing is read here."""


def a_driver(conf, name):
    conf.set_override("driver", name, group="scheduler")
    return drivers.load(conf, load_host_manager(conf, NoReader()))


@pytest.mark.parametrize(
    ("given", "connection", "driver", "found"),
    [
        pytest.param(None, None, FILTER, "database", id="tables of our own"),
        pytest.param(None, None, "caching_scheduler", "database", id="the caching driver claims"),
        pytest.param(None, None, CHANCE, "none", id="a driver that never claims"),
        pytest.param(None, "sqlite:////x/claims", FILTER, "database", id="a database for claims"),
        pytest.param("none", None, FILTER, "none", id="none, as told"),
        pytest.param("placement", None, FILTER, "placement", id="Placement, as told"),
    ],
)
def test_what_is_settled(database, given, connection, driver, found):
    conf = a_conf()
    for name, group, value in (
        ("claims", "scheduler", given),
        ("connection", "claims", connection),
    ):
        if value is not None:
            conf.set_override(name, value, group=group)
    backend.settle(conf, database, a_driver(conf, driver))
    assert conf.scheduler.claims == found


def test_nothing_is_claimed_where_nothing_may_be_written(database):
    conf = a_conf()
    database.is_read_only = True
    backend.settle(conf, database)
    assert conf.scheduler.claims == "none"


@pytest.mark.parametrize(("name", "serves"), [(FILTER, True), (CHANCE, False)])
def test_a_driver_that_claims_nothing_is_named(database, caplog, name, serves):
    conf = a_conf()
    conf.set_override("claims", "database", group="scheduler")
    assert backend.of_conf(conf, database).serves(a_driver(conf, name)) is serves
    assert ("ChanceScheduler claims nothing" in caplog.text) is not serves
