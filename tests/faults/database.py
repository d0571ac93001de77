"""What happens to the database, and on the way to it."""

import time
from collections.abc import Sequence

import sqlalchemy
from sqlalchemy import exc

from tests.faults.world import (
    ANSWERS_MEANWHILE,
    HOSTS,
    PAUSE_SECONDS,
    REDO_MIB,
    SILENCE_TIMEOUT_SECONDS,
    World,
)
from tests.world import databases

DEADLOCKS = 3
#: A row that is written when there is hardly room left, and so that it takes much.
DECOY_BYTES = (100_000, 10_000, 100)
DECOY = """
INSERT INTO claims (consumer_uuid, host, node, generation, vcpus, memory_mb, disk_gb, request_id,
                    answer, created_at, expires_at, closed_at)
VALUES (CONCAT('decoy', UUID_SHORT()), 'none', 'none', 0, 0, 0, 0, 'none',
        REPEAT('x', :size), UTC_TIMESTAMP(), UTC_TIMESTAMP(), UTC_TIMESTAMP())
"""
#: The server gives up for good when its log, a file with holes at first, finds no room.
ROOM_FOR_REDO_KIB = 3 * REDO_MIB * 1024
TABLE_FULL = 1114
GOT_DEADLOCK = 1213


def restarted(world: World) -> None:
    world.mariadb.stop()
    world.mariadb.start()


def killed(world: World) -> None:
    world.mariadb.kill()
    world.mariadb.start()


def paused(world: World) -> None:
    world.mariadb.pause()
    time.sleep(PAUSE_SECONDS)
    world.mariadb.resume()


def slow(world: World) -> None:
    world.proxy.delay_seconds = 2.0
    time.sleep(PAUSE_SECONDS)
    world.proxy.delay_seconds = 0.0


def silent(world: World) -> None:
    """Nothing comes through any more, and nobody is told; as in a network that has parted."""
    world.proxy.is_silent = True
    time.sleep(PAUSE_SECONDS + SILENCE_TIMEOUT_SECONDS)
    world.proxy.is_silent = False


def cut(world: World) -> None:
    for _ in range(3):
        world.proxy.cut()
        time.sleep(1)


def impatient(world: World) -> None:
    """The server closes what was idle for a second, between the requests and beside them.

    SQLAlchemy's pool logs a traceback of a connection that ends as it is given back.
    """
    written = [len(each.log) for each in world.schedulers]
    try:
        world.query("SET GLOBAL wait_timeout = 1")
        world.proxy.cut()
        time.sleep(PAUSE_SECONDS)
        world.load.wait_for_answers(ANSWERS_MEANWHILE)
    finally:
        world.query("SET GLOBAL wait_timeout = DEFAULT")
        world.proxy.cut()
    for each, start in zip(world.schedulers, written, strict=True):
        lines = [line for line in each.log[start:].splitlines() if "Traceback" in line]
        assert [line for line in lines if "sqlalchemy.pool" not in line] == []


def read_only(world: World) -> None:
    world.query("SET GLOBAL read_only = 1")
    time.sleep(PAUSE_SECONDS)
    world.query("SET GLOBAL read_only = 0")


def gone_back(world: World, tables: Sequence[str], *, empties: bool = False) -> None:
    """Tables are as they were some answers ago, or empty, and ids are drawn again."""
    for table in tables:
        world.query(f"CREATE OR REPLACE TABLE earlier_{table} AS SELECT * FROM {table}")
        if empties:
            world.query(f"TRUNCATE TABLE earlier_{table}")
    world.load.wait_for_answers(ANSWERS_MEANWHILE)
    with databases.transaction(world.own_url) as connection:
        for table in tables:
            connection.exec_driver_sql(f"DELETE FROM {table}")
            connection.exec_driver_sql(f"INSERT INTO {table} SELECT * FROM earlier_{table}")
    for table in tables:
        world.query(f"ALTER TABLE {table} AUTO_INCREMENT = 1")
        world.query(f"DROP TABLE earlier_{table}")
    world.mended()


def one_host_lost(world: World) -> None:
    world.query("DELETE FROM claim_hosts WHERE host = :host", host=HOSTS[0])
    world.mended()


def newest_claims_lost(world: World) -> None:
    """As many as were made while so many requests were answered."""
    (before,) = world.query("SELECT MAX(id) AS id FROM claims")
    world.load.wait_for_answers(ANSWERS_MEANWHILE)
    world.query("DELETE FROM claims WHERE id > :id", id=before["id"])
    world.mended()


def commits_lost(world: World) -> None:
    """The server does not write its log at each commit, and is killed."""
    world.query("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
    world.load.wait_for_answers(ANSWERS_MEANWHILE)
    killed(world)
    world.mended()


def rows_locked(world: World) -> None:
    """Somebody holds the generations of all hosts, longer than the server lets others wait."""
    with databases.transaction(world.own_url) as connection:
        connection.exec_driver_sql("SELECT * FROM claim_hosts FOR UPDATE")
        time.sleep(PAUSE_SECONDS)


def deadlocks(world: World) -> None:
    """A rival takes the same rows the other way round, until the server breaks the knots."""
    before, victims = _deadlocks(world), 0
    while _deadlocks(world) - before - victims < DEADLOCKS:
        victims += _is_victim(world)


def _deadlocks(world: World) -> int:
    (row,) = world.query("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")
    return int(row["Value"])


def _is_victim(world: World) -> bool:
    """Lock what a claim needs last, then what it has by then; whether the server ended us."""
    try:
        with databases.transaction(world.own_url) as connection:
            _become_heavy(connection)
            connection.exec_driver_sql("SELECT id FROM claims FOR UPDATE")
            time.sleep(0.5)
            connection.exec_driver_sql("SELECT id FROM claim_hosts FOR UPDATE")
    except exc.OperationalError as error:
        if error.orig is None or error.orig.args[0] != GOT_DEADLOCK:
            raise
        return True
    return False


def _become_heavy(connection: sqlalchemy.Connection) -> None:
    """The server ends the transaction that changed less."""
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS ballast (id INT PRIMARY KEY)")
    connection.exec_driver_sql("DELETE FROM ballast")
    values = [{"id": number} for number in range(500)]
    connection.execute(sqlalchemy.text("INSERT INTO ballast VALUES (:id)"), values)


def disk_full(world: World) -> None:
    """There is no room for one more row, for a while."""
    world.disk.fill(ROOM_FOR_REDO_KIB)
    for size in DECOY_BYTES:
        _write_decoys(world, size)
    time.sleep(PAUSE_SECONDS)
    world.disk.empty()
    world.query("DELETE FROM claims WHERE consumer_uuid LIKE 'decoy%'")


def _write_decoys(world: World, size_bytes: int) -> None:
    """Write rows until the server says that its table is full."""
    try:
        while True:
            world.query(DECOY, size=size_bytes)
    except exc.DBAPIError as error:
        if error.orig is None or error.orig.args[0] != TABLE_FULL:
            raise
