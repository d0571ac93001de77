"""Which claims there are: what is configured, and what is found where nothing is."""

import contextlib
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
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.host_state import Consumption
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.table import HostTable
from tests.builders import a_conf, a_fleet
from tests.servers.loopback_http import ReplayServer
from tests.unit.db.conftest import empty_url

__all__ = ["empty_url"]

FILTER, CHANCE = "filter_scheduler", "chance_scheduler"


def configured(claims=None, driver=FILTER, **claims_options):
    conf = a_conf(scheduler__driver=driver)
    if claims is not None:
        conf.set_override("claims", claims, group="scheduler")
    for name, value in claims_options.items():
        conf.set_override(name, value, group="claims")
    return conf


@pytest.mark.parametrize(
    ("how", "where", "found", "told"),
    [
        pytest.param({}, {}, "database", "Hosts are claimed in sqlite", id="tables of our own"),
        pytest.param({"driver": "caching_scheduler"}, {}, "database", "claimed", id="caching"),
        pytest.param({"driver": CHANCE}, {}, "none", "ChanceScheduler never does", id="chance"),
        pytest.param({"connection": "sqlite:////x"}, {}, "database", "in sqlite:////x", id="named"),
        pytest.param({}, {"is_read_only": True}, "none", "not to be written to", id="read only"),
        pytest.param({"claims": "none"}, {}, "none", "", id="none, as told"),
        pytest.param({"claims": "placement"}, {}, "placement", "", id="Placement, as told"),
    ],
)
def test_claims_that_are_not_set_are_settled(database, caplog, how, where, found, told):
    caplog.set_level("INFO")
    conf = configured(**how)
    loading.settle(conf, Database(database.url, **where), drivers.called_class(conf))
    assert conf.scheduler.claims == found
    assert told in caplog.text
    assert ("Hosts are not claimed: " in caplog.text) is (found == "none" and "claims" not in how)


def test_nothing_is_claimed_without_tables(empty_url, caplog):
    caplog.set_level("INFO")
    conf = configured()
    loading.settle(conf, Database(empty_url))
    assert conf.scheduler.claims == "none"
    assert "empty.sqlite has no tables for that; see [claims] connection" in caplog.text


def test_the_database_for_claims_is_another_one_where_one_is_named(database):
    assert loading.claims_database(configured(), database) is database
    other = loading.claims_database(configured(connection="sqlite:////x/claims"), database)
    assert (other.url.database, other.option) == ("/x/claims", "[claims] connection")


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
    loading.check_ready(configured(), found)
    if reason is None:
        loading.check_ready(configured("database"), found)
        return
    with pytest.raises(errors.ConfigurationError) as refused:
        loading.check_ready(configured("database"), found)
    assert "[scheduler] claims: " in str(refused.value)
    assert f"{found.masked_url} {reason}" in str(refused.value)


def test_tables_of_an_older_release_stop_the_start(empty_url):
    old = Database(empty_url)
    migration.sync(old)
    with old.write() as connection:
        connection.exec_driver_sql("UPDATE nova_scheduler_version SET version_num = '0002'")
    with pytest.raises(errors.DatabaseNotReady, match="revision 0002"):
        loading.check_ready(configured("database"), old)


def test_a_database_for_claims_that_does_not_answer_stops_the_start(database):
    conf = configured("database", connection="mysql+pymysql://u:hidden@127.0.0.1:1/c")
    conf.set_override("max_retries", 0, group="database")
    with pytest.raises(errors.ConfigurationError, match=r"\[claims\] connection") as refused:
        loading.check_ready(conf, database)
    assert "hidden" not in str(refused.value)


def test_a_placement_that_cannot_be_logged_in_to_stops_the_start(database):
    with pytest.raises(errors.ConfigurationError, match=r"\[placement\] auth_type"):
        loading.check_ready(configured("placement"), database)


@pytest.mark.parametrize(
    ("answer", "is_too_old"),
    [
        pytest.param((406, {"errors": [{"detail": "Unacceptable version"}]}), True, id="too old"),
        pytest.param((200, {"versions": []}), False, id="right"),
        pytest.param((403, None), False, id="refused"),
        pytest.param(None, False, id="gone"),
    ],
)
def test_a_placement_that_is_too_old_stops_the_start(database, answer, is_too_old):
    conf = configured("placement")
    conf.set_override("auth_type", "noauth", group="placement")
    how = contextlib.nullcontext()
    if is_too_old:
        text = r"\[scheduler\] claims: this Placement does not know version 1.36"
        how = pytest.raises(errors.ConfigurationError, match=text)
    with ReplayServer([answer] * 99) as server:
        conf.set_override("endpoint_override", f"{server.endpoint}/placement", group="placement")
        with how:
            loading.check_ready(conf, database)
        ((method, path, headers, _body), *again) = server.calls
        assert (method, path) == ("GET", "/placement/")
        assert headers["openstack-api-version"] == "placement 1.36"
        assert bool(again) is (answer is None)


def test_reservations_last_for_as_long_as_is_configured(database):
    conf = configured("database", expiry_seconds=77)
    make = loading.reservations_from_conf(conf, database, lambda: 12.0)
    reservations = make(a_fleet({}))
    assert (type(reservations), reservations.clock()) == (SharedReservations, 12.0)
    assert loading.reservations_from_conf(conf, database)(HostTable()).clock is time.time
    amount = Consumption(ram_mb=1, disk_mb=1, vcpus=1)
    [reserved] = reservations.reserve([0], [("u1", None)], amount, 12.0)
    assert (reserved.terms.created_at, reserved.terms.expires_at) == (12.0, 12.0 + 77)


@pytest.mark.parametrize(
    ("claims", "driver", "found", "warning"),
    [
        (None, CHANCE, Claims, None),
        ("none", FILTER, Claims, None),
        ("database", FILTER, DatabaseClaims, None),
        ("database", CHANCE, Claims, "ChanceScheduler claims nothing although"),
        ("placement", FILTER, PlacementClaims, None),
        ("placement", CHANCE, Claims, "ChanceScheduler asks Placement for nothing"),
    ],
)
def test_a_driver_that_claims_nothing_is_named(database, caplog, claims, driver, found, warning):
    conf = configured(claims, driver)
    conf.set_override("auth_type", "noauth", group="placement")
    reservations = loading.reservations_from_conf(conf, database)(HostTable())
    assert type(reservations) is (SharedReservations if claims == "database" else Reservations)
    manager = SimpleNamespace(reservations=reservations, lock=threading.Lock())
    manager.option_of_filters = HostManager.option_of_filters
    assert type(loading.claims_from_conf(conf, manager, drivers.called_class(conf))) is found
    warnings = [each for each in caplog.messages if "claims nothing" in each]
    assert [each[: len(warning or "")] for each in warnings] == ([warning] if warning else [])
