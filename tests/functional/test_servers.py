"""Each private server starts, answers, keeps its data over a restart and leaves nothing behind."""

from __future__ import annotations

import socket
from collections.abc import Callable

import psutil
import pytest
import sqlalchemy

from tests.servers import mariadb, postgresql, programs, rabbitmq
from tests.servers.fixtures import require
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.private import PrivateServer
from tests.servers.rabbitmq import RabbitMQ

KINDS = [
    pytest.param(RabbitMQ, rabbitmq.PROGRAMS, id="rabbitmq"),
    pytest.param(MariaDB, mariadb.PROGRAMS, id="mariadb"),
    pytest.param(PostgreSQL, postgresql.PROGRAMS, id="postgresql"),
]


def processes_on(server: PrivateServer) -> list[psutil.Process]:
    """All processes whose command line or environment names the server's folder."""
    folder = str(server.folder)
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if any(folder in word for word in words):
            found.append(process)
    return found


@pytest.mark.parametrize(("kind", "needed"), KINDS)
def test_a_server_starts_restarts_and_leaves_nothing(
    kind: Callable[[], PrivateServer], needed: tuple[programs.Program, ...]
) -> None:
    require(needed)
    with kind() as server:
        assert server.answers()
        assert processes_on(server)
        server.kill()
        assert not server.answers()
        server.start()
        assert server.answers()
        server.pause()
    assert processes_on(server) == []
    assert not server.folder.exists()


def test_a_server_that_cannot_start_says_why() -> None:
    require(mariadb.PROGRAMS)

    class Misled(MariaDB):
        def command(self) -> list[str]:
            return [*super().command(), "--no-such-option"]

    server = Misled()
    with pytest.raises(RuntimeError, match="unknown option '--no-such-option'"):
        server.__enter__()
    assert processes_on(server) == []
    assert not server.folder.exists()


def test_virtual_hosts_are_separate(rabbitmq: RabbitMQ, transport_url: str) -> None:
    vhost = transport_url.rpartition("/")[2]
    with rabbitmq.connect(vhost) as connection:
        connection.SimpleQueue("here").close()
    assert "here" in rabbitmq.control("list_queues", "-p", vhost, "name")
    assert "here" not in rabbitmq.control("list_queues", "-p", "/", "name")


def test_every_database_takes_a_table(database_url: str) -> None:
    engine = sqlalchemy.create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE t (name VARCHAR(20))"))
        connection.execute(sqlalchemy.text("INSERT INTO t VALUES ('Zürich ☂')"))
        assert connection.scalar(sqlalchemy.text("SELECT name FROM t")) == "Zürich ☂"
    engine.dispose()


def test_a_reserved_port_is_reserved_until_the_end() -> None:
    first, second = MariaDB(), MariaDB()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        with pytest.raises(OSError, match="already in use"):
            other.bind(("127.0.0.1", first.port))
        assert first.port != second.port
        first.close()
        second.close()
        other.bind(("127.0.0.1", first.port))
