import contextlib
import pathlib
import threading

import pytest
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exception
from sqlalchemy import event

from scheduler import conf as options
from scheduler.db import services
from scheduler.db.database import Database
from scheduler.db.tables import host_mappings
from scheduler.db.tables import services as table
from scheduler.threads import in_thread
from tests.world import databases


def a_service(database: Database) -> int:
    with database.write() as conn:
        return services.get_or_create(conn, "h1", "nova-compute", "compute", 74).id


def report_count(database: Database) -> int:
    with database.read() as conn:
        return conn.execute(sa.select(table.c.report_count)).scalar_one()


def conf_with(tmp_path: pathlib.Path, text: str) -> cfg.ConfigOpts:
    path = tmp_path / "nova.conf"
    path.write_text(text, encoding="utf-8")
    return options.detached({("DEFAULT", "state_path"): str(tmp_path / "state")}, [str(path)])


def test_the_configured_connection_or_an_embedded_default(tmp_path):
    database = Database.from_conf(conf_with(tmp_path, ""))
    assert database.is_embedded_default
    assert database.masked_url == f"sqlite:///{tmp_path}/state/nova.sqlite"
    text = "[database]\nconnection = mysql+pymysql://u:secret@h/nova\n"
    database = Database.from_conf(conf_with(tmp_path, text))
    assert not database.is_embedded_default
    assert database.masked_url == "mysql+pymysql://u:***@h/nova?charset=utf8mb4"


def test_pool_options_reach_the_engine(tmp_path):
    text = "[database]\nmax_pool_size = 3\nidle_timeout = 9\nmax_retries = 0\n"
    conf = conf_with(tmp_path, text + "connection = mysql+pymysql://u@h/nova\n")
    pool = Database.from_conf(conf).engine.pool
    assert isinstance(pool, sa.QueuePool)
    assert (pool.size(), pool._recycle) == (3, 9)


def test_nothing_connects_before_the_first_use(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/nova.sqlite")
    database.dispose()
    assert list(tmp_path.iterdir()) == []
    with database.read() as conn:
        assert conn.exec_driver_sql("SELECT 1").scalar() == 1
    assert (tmp_path / "nova.sqlite").exists()


def test_sqlite_is_set_up_for_several_processes(database):
    if database.dialect_name != "sqlite":
        pytest.skip("settings of SQLite")
    with database.read() as conn:
        assert conn.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_write_commits_and_an_error_rolls_back(database):
    a_service(database)
    with database.write() as conn:
        conn.execute(table.update().values(report_count=1))

    with contextlib.suppress(ZeroDivisionError), database.write() as conn:
        conn.execute(table.update().values(report_count=2))
        raise ZeroDivisionError
    assert report_count(database) == 1


def test_a_new_read_sees_what_others_committed(database):
    a_service(database)
    assert report_count(database) == 0
    databases.query(database.url, "UPDATE services SET report_count = 7")
    assert report_count(database) == 7


def test_foreign_keys_are_enforced(database):
    with pytest.raises(db_exception.DBReferenceError), database.write() as conn:
        conn.execute(host_mappings.insert().values(host="h1", cell_id=999))


def test_reading_and_then_writing_loses_no_update(database):
    """Each thread has connections of its own, as processes have."""
    a_service(database)

    def count() -> None:
        for _ in range(20):
            with database.write() as conn:
                row = conn.execute(sa.select(table.c.report_count).with_for_update()).one()
                conn.execute(table.update().values(report_count=row.report_count + 1))

    for each in [in_thread(count) for _ in range(4)]:
        each.result(60)
    assert report_count(database) == 80


DEADLOCK, LOST = db_exception.DBDeadlock(), db_exception.DBConnectionError()
DB_ERROR = db_exception.DBError("no")


@pytest.mark.parametrize(
    ("error", "failures", "attempts"),
    [(DEADLOCK, 2, 3), (LOST, 2, 3), (DEADLOCK, 9, 4), (ValueError(), 9, 1), (DB_ERROR, 9, 1)],
    ids=["deadlock", "lost connection", "again and again", "own error", "other error"],
)
def test_a_transaction_is_tried_again_a_few_times(database, error, failures, attempts):
    a_service(database)
    patient = Database(database.url, settings={"db_max_retries": 3, "db_retry_interval": 0})
    pending = [error] * failures

    def work(conn: sa.Connection) -> None:
        tried.append(1)
        conn.execute(table.update().values(report_count=table.c.report_count + 1))
        if pending:
            raise pending.pop()

    tried: list[int] = []
    if failures < attempts:
        patient.write_retrying(work)
    else:
        with pytest.raises(type(error)):
            patient.write_retrying(work)
    assert (len(tried), report_count(database)) == (attempts, int(failures < attempts))
    patient.dispose()


def test_connection_lost_in_the_commit_is_not_retried(database):
    """Nobody knows whether it was committed; a second time might count twice."""
    attempts = []

    def lose(conn: sa.Connection) -> None:
        raise db_exception.DBConnectionError

    event.listen(database.engine, "commit", lose)
    with pytest.raises(db_exception.DBConnectionError):
        database.write_retrying(lambda conn: attempts.append(1))
    event.remove(database.engine, "commit", lose)
    assert len(attempts) == 1


def test_sqlite_lock_that_is_not_to_be_had_is_tried_again(database, monkeypatch):
    if database.dialect_name != "sqlite":
        pytest.skip("SQLite locks the whole file")
    a_service(database)
    # No waiting for the lock within one attempt.
    monkeypatch.setattr("scheduler.db.database.SQLITE_BUSY_TIMEOUT_SECONDS", -1)
    patient = Database(database.url, settings={"db_retry_interval": 0, "db_max_retries": 10_000})
    attempts = []
    refused_twice = threading.Event()

    def note(_connection: sa.Connection) -> None:
        attempts.append(1)
        if len(attempts) > 2:
            refused_twice.set()

    event.listen(patient.engine, "engine_connect", note)
    change = table.update().values(report_count=5)
    with database.write():
        writing = in_thread(lambda: patient.write_retrying(lambda conn: conn.execute(change)))
        assert refused_twice.wait(30)
    writing.result(30)
    assert report_count(database) == 5
    patient.dispose()
