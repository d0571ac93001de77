"""Which claims there are: what is configured, and what is found where nothing is."""

import threading
import time
from types import SimpleNamespace

import pytest

from scheduler import drivers, errors
from scheduler.claims import loading
from scheduler.claims.backend import Claims
from scheduler.claims.database import DatabaseClaims
from scheduler.claims.placement.backend import PlacementClaims
from scheduler.claims.shared_reservations import SharedReservations
from scheduler.db import migration
from scheduler.db.database import Database
from scheduler.hosts.consumption import Consumption
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable
from tests.builders import a_conf, a_fleet
from tests.unit.db.conftest import empty_url

__all__ = ["empty_url"]

FILTER, CHANCE = "filter_scheduler", "chance_scheduler"


def a_class(conf, name):
    conf.set_override("driver", name, group="scheduler")
    return drivers.called_class(conf)


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
    loading.settle(conf, database, a_class(conf, driver))
    assert conf.scheduler.claims == found


def test_nothing_is_claimed_where_nothing_may_be_written(database):
    conf = a_conf()
    database.is_read_only = True
    loading.settle(conf, database)
    assert conf.scheduler.claims == "none"


@pytest.mark.parametrize(("name", "serves"), [(FILTER, True), (CHANCE, False)])
def test_a_driver_that_claims_nothing_is_named(database, caplog, name, serves):
    conf = a_conf()
    conf.set_override("claims", "database", group="scheduler")
    assert loading.backend_from_conf(conf, database).serves(a_class(conf, name)) is serves
    assert ("ChanceScheduler claims nothing" in caplog.text) is not serves


def test_why_nothing_is_claimed_is_told(database, empty_url, caplog):
    caplog.set_level("INFO")
    conf = a_conf()
    loading.settle(conf, database)
    assert f"Hosts are claimed in {database.masked_url}" in caplog.text
    for found, driver, reason in (
        (database, a_class(a_conf(), CHANCE), "ChanceScheduler never does"),
        (Database(empty_url), None, "empty.sqlite has no tables for that; see [claims] connection"),
        (Database(database.url, is_read_only=True), None, "is not to be written to"),
    ):
        conf = a_conf()
        loading.settle(conf, found, driver)
        assert conf.scheduler.claims == "none"
        assert "Hosts are not claimed: " in caplog.messages[-1]
        assert reason in caplog.messages[-1]
        found.dispose()


def test_the_database_for_claims_is_another_one_where_one_is_named(database):
    conf = a_conf()
    assert loading.claims_database(conf, database) is database
    conf.set_override("connection", "sqlite:////x/claims", group="claims")
    other = loading.claims_database(conf, database)
    assert (other.url.database, other.option) == ("/x/claims", "[claims] connection")


def claiming(conf, claims):
    conf.set_override("claims", claims, group="scheduler")
    return conf


@pytest.mark.parametrize(
    ("read_only", "tables", "reason"),
    [
        (False, True, None),
        (True, True, "is not to be written to: set [claims] connection to a database"),
        (False, False, "has no tables for claims: set [claims] connection to a database"),
    ],
)
def test_what_could_not_be_booked_stops_the_start(database, empty_url, read_only, tables, reason):
    found = Database(database.url if tables else empty_url, is_read_only=read_only)
    made = loading.backend_from_conf(claiming(a_conf(), "database"), found)
    if reason is None:
        made.check_ready()
        return
    with pytest.raises(errors.ConfigurationError) as refused:
        made.check_ready()
    assert "[scheduler] claims: " in str(refused.value)
    assert f"{found.masked_url} {reason}" in str(refused.value)


def test_tables_of_an_older_release_stop_the_start(empty_url):
    old = Database(empty_url)
    migration.sync(old)
    with old.write() as connection:
        connection.exec_driver_sql("UPDATE nova_scheduler_version SET version_num = '0002'")
    with pytest.raises(errors.DatabaseNotReady, match="revision 0002"):
        loading.backend_from_conf(claiming(a_conf(), "database"), old).check_ready()


def test_a_database_for_claims_that_does_not_answer_stops_the_start(database):
    conf = claiming(a_conf(), "database")
    conf.set_override("connection", "mysql+pymysql://u:hidden@127.0.0.1:1/c", group="claims")
    conf.set_override("max_retries", 0, group="database")
    with pytest.raises(errors.ConfigurationError, match=r"\[claims\] connection") as refused:
        loading.backend_from_conf(conf, database).check_ready()
    assert "hidden" not in str(refused.value)


def test_reservations_last_for_as_long_as_is_configured(database):
    conf = claiming(a_conf(), "database")
    conf.set_override("expiry_seconds", 77, group="claims")
    made = loading.backend_from_conf(conf, database)
    reservations = made.reservations(lambda: 12.0)(a_fleet({}))
    assert (type(reservations), reservations.clock()) == (SharedReservations, 12.0)
    assert made.reservations()(HostTable()).clock is time.time
    reserved = reservations.reserve(0, "u1", Consumption(ram_mb=1, disk_mb=1, vcpus=1), 12.0)
    assert (reserved.terms.created_at, reserved.terms.expires_at) == (12.0, 12.0 + 77)
    manager = SimpleNamespace(reservations=reservations, lock=threading.Lock())
    assert type(made.claims(manager)) is DatabaseClaims


def test_without_claims_everything_is_one_workers_own(database):
    for claims in (None, "none"):
        conf = a_conf() if claims is None else claiming(a_conf(), claims)
        made = loading.backend_from_conf(conf, database)
        made.check_ready()
        assert made.serves(a_class(a_conf(), CHANCE))
        assert type(made.reservations()(HostTable())) is Reservations
        assert type(made.claims(None)) is Claims


@pytest.mark.parametrize(("name", "serves"), [(FILTER, True), (CHANCE, False)])
def test_a_driver_that_asks_placement_for_nothing_is_named(database, caplog, name, serves):
    conf = claiming(a_conf(), "placement")
    conf.set_override("auth_type", "noauth", group="placement")
    made = loading.backend_from_conf(conf, database)
    assert made.serves(a_class(a_conf(), name)) is serves
    assert ("ChanceScheduler asks Placement for nothing" in caplog.text) is not serves
    assert type(made.claims("the host manager")) is PlacementClaims
