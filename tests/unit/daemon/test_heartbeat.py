"""The services row and its heartbeats, on a database."""

import pytest
import sqlalchemy as sa

from scheduler.daemon.periodic import SERVICE_VERSION, ServiceHeartbeat
from scheduler.db import services as service_rows
from scheduler.db.tables import services
from tests.builders import a_conf
from tests.unit.db.builders import delete_host

BINARY = "nova-scheduler"


def a_heartbeat(database, **options):
    conf = a_conf(DEFAULT__host="sched1", **options)
    return ServiceHeartbeat(conf, database, BINARY, "scheduler")


def rows(database):
    with database.read() as connection:
        return list(connection.execute(sa.select(services)).mappings())


@pytest.mark.parametrize(
    ("enabled", "disabled", "reason"),
    [(True, False, None), (False, True, "New service disabled due to config option.")],
)
def test_new_row(database, enabled, disabled, reason):
    a_heartbeat(database, DEFAULT__enable_new_services=enabled).register()

    (row,) = rows(database)
    assert (row.host, row.binary, row.topic) == ("sched1", BINARY, "scheduler")
    assert (row.disabled, row.disabled_reason) == (disabled, reason)
    assert (row.version, row.report_count, row.forced_down) == (SERVICE_VERSION, 0, False)


def test_workers_share_the_row_and_the_operators_choice_stays(database):
    first = a_heartbeat(database)
    first.register()
    first.start()
    first.stop()
    with database.write() as connection:
        values = {"disabled": True, "disabled_reason": "maintenance"}
        service_rows.change(connection, "sched1", BINARY, **values)

    a_heartbeat(database).register()

    (row,) = rows(database)
    assert (row.disabled, row.disabled_reason, row.report_count) == (True, "maintenance", 0)


def test_version_is_brought_up_to_date(database, caplog):
    caplog.set_level("INFO")
    with database.write() as connection:
        service_rows.get_or_create(connection, "sched1", BINARY, "scheduler", 16)

    a_heartbeat(database).register()

    (row,) = rows(database)
    assert row.version == SERVICE_VERSION
    text = f"Updating service version for {BINARY} on sched1 from 16 to {SERVICE_VERSION}"
    assert text in caplog.text


def test_failure_and_recovery(database, caplog):
    caplog.set_level("INFO")
    heartbeat = a_heartbeat(database)
    heartbeat.register()
    with database.write() as connection:
        connection.execute(sa.text("ALTER TABLE services RENAME TO hidden"))

    heartbeat.beat()
    heartbeat.beat()

    assert caplog.text.count("Unexpected error while reporting service status") == 2
    assert "Traceback" not in caplog.text.partition("Unexpected")[2]
    with database.write() as connection:
        connection.execute(sa.text("ALTER TABLE hidden RENAME TO services"))

    heartbeat.beat()
    heartbeat.beat()

    assert caplog.text.count("Recovered from being unable to report status.") == 1
    assert rows(database)[0].last_seen_up.microsecond == 0


def test_deleted_row_is_made_again(database, caplog):
    heartbeat = a_heartbeat(database)
    heartbeat.register()
    with database.write() as connection:
        delete_host(connection, "sched1")

    other = a_heartbeat(database)
    other._service_id = heartbeat._service_id  # a worker that registered before
    for each in (heartbeat, other, heartbeat):
        each.beat()

    assert caplog.text.count(f"record for the {BINARY} service on host sched1 is gone") == 1
    assert [row.host for row in rows(database) if not row.deleted] == ["sched1"]
