"""TLS to the broker and to the databases: only the right name, by the right authority, will do.

The certificate is for ``localhost``, so 127.0.0.1 is a wrong name for the same server.
"""

import json

import kombu
import kombu.transport
import pytest

from scheduler import concurrency, errors, exit_codes
from scheduler.cli import app
from scheduler.rpc import connection as broker_connection
from tests.servers import mariadb as mariadb_server
from tests.servers import postgresql as postgresql_server
from tests.servers.certificates import NAME
from tests.servers.fixtures import require
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.private import LOOPBACK
from tests.world import databases
from tests.world.deployment import render

MINE, STRANGER, SYSTEM = "mine", "stranger", "system"
NAME_DIFFERS = f"certificate is not valid for '{LOOPBACK}'"
UNKNOWN = "unable to get local issuer certificate"


@pytest.fixture(scope="module")
def mysql(authority):
    require(mariadb_server.PROGRAMS)
    with MariaDB(certificate=authority.certificate) as server:
        yield server


@pytest.fixture(scope="module")
def postgres(authority):
    require(postgresql_server.PROGRAMS)
    with PostgreSQL(authority.certificate) as server:
        yield server


@pytest.fixture(scope="module")
def vhost(rabbitmq):
    return rabbitmq.create_vhost()


@pytest.fixture
def trust(authority, monkeypatch):
    """The file to configure for one of MINE and STRANGER; SYSTEM: none, as the system trusts."""

    def trusted(who):
        if who == SYSTEM:
            monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
            return ""
        return str(authority.file if who == MINE else authority.stranger)

    return trusted


@pytest.mark.parametrize(
    ("host", "trusted", "options", "refusal"),
    [
        (NAME, MINE, {}, None),
        (NAME, SYSTEM, {}, None),
        (NAME, MINE, {"ssl_version": "TLSv1_2"}, None),
        (LOOPBACK, MINE, {}, NAME_DIFFERS),
        (LOOPBACK, MINE, {"ssl_enforce_hostname_verification": False}, NAME_DIFFERS),
        (LOOPBACK, SYSTEM, {}, NAME_DIFFERS),
        (LOOPBACK, SYSTEM, {"ssl_version": "TLSv1_2"}, NAME_DIFFERS),
        (NAME, STRANGER, {}, UNKNOWN),
        (NAME, STRANGER, {"ssl_version": "TLSv1_2"}, UNKNOWN),
    ],
)
def test_broker_check(rabbitmq, vhost, trust, tmp_path, capsys, host, trusted, options, refusal):
    config = tmp_path / "nova.conf"
    settings = {
        "DEFAULT": {"transport_url": rabbitmq.tls_url(vhost, host), "state_path": tmp_path},
        "oslo_messaging_rabbit": {"ssl": True, "ssl_ca_file": trust(trusted), **options},
    }
    config.write_text(render(settings))
    capsys.readouterr()
    words = ["broker", "check", "-f", "json", "--timeout", "60"]
    status = app.main(["--config-file", str(config), *words])
    row = json.loads(capsys.readouterr().out)[0]
    if refusal is None:
        assert row["state"] == "connected"
        assert "with TLS" in row["detail"]
    else:
        assert (status, row["state"]) == (exit_codes.BROKER_TLS, "TLS failed")
        assert refusal in row["detail"]


def test_each_broker_of_a_url_has_its_own_name(rabbitmq, vhost, authority, monkeypatch):
    monkeypatch.delitem(kombu.transport._transport_cache, "amqp", raising=False)
    broker_connection.install()
    nobody = f"amqp://guest:guest@{LOOPBACK}:1/{vhost}"
    somebody = rabbitmq.tls_url(vhost, NAME).replace("rabbit:", "amqp:")
    tls = {"ca_certs": str(authority.file), "server_hostname": None}
    with kombu.Connection(f"{nobody};{somebody}", ssl=tls) as connection:
        connection.ensure_connection(max_retries=4, interval_start=0, interval_step=0)
        assert connection.connected


PARAMETERS = {
    # What the URL says of TLS, where {ca} is the authority's file.
    "mysql": ["ssl_ca={ca}", "ssl_ca={ca}&ssl_verify_cert=true", "ssl_ca={ca}&ssl=true"],
    "postgresql": ["sslrootcert={ca}", "sslrootcert={ca}&sslmode=verify-full"],
}


@pytest.mark.parametrize(
    ("driver", "parameters"),
    [(name, each) for name, several in PARAMETERS.items() for each in several],
)
@pytest.mark.parametrize(
    ("host", "trusted", "refusal"),
    [(NAME, MINE, None), (LOOPBACK, MINE, LOOPBACK), (NAME, STRANGER, "ertificate")],
)
def test_databases(request, trust, driver, parameters, host, trusted, refusal):
    server = request.getfixturevalue("mysql" if driver == "mysql" else "postgres")
    name = "mysql" if driver == "mysql" else "postgres"
    url = server.url(name, host=host) + "?" + parameters.format(ca=trust(trusted))
    settings = {"max_retries": 10, "retry_interval": 10}
    with databases.opened(url, settings=settings) as database:
        if refusal is None:
            with database.engine.connect() as connection:
                assert is_encrypted(driver, connection)
            return
        with pytest.raises(errors.ConfigurationError) as caught:
            _ = database.engine
        assert refusal in str(caught.value)
        assert "\n" not in str(caught.value)


def settings_of(authority):
    return {"oslo_messaging_rabbit": {"ssl": True, "ssl_ca_file": authority.file}}


def database_url(server, name, host, authority):
    word = "ssl_ca" if isinstance(server, MariaDB) else "sslrootcert"
    return f"{server.url(name, host=host)}?{word}={authority.file}"


def test_a_daemon_on_nothing_but_tls(rabbitmq, vhost, mysql, authority, deployment):
    url = database_url(mysql, mysql.create_database(), NAME, authority)
    made = deployment(rabbitmq.tls_url(vhost, NAME), url, settings=settings_of(authority))
    made.sync_database()
    made.start_scheduler().wait_ready()

    states = rabbitmq.control("list_connections", "--silent", "vhost", "ssl").split("\n")
    assert {each for each in states if each.startswith(vhost)} == {f"{vhost}\ttrue"}
    assert [row["usable"] for row in made.manage("db", "check")] == ["yes"]


def test_a_broker_of_another_name_is_told_in_the_log(
    rabbitmq, vhost, postgres, authority, deployment
):
    made = deployment(
        rabbitmq.tls_url(vhost, LOOPBACK),
        database_url(postgres, postgres.create_database(), NAME, authority),
        backend=concurrency.THREADING,
        settings=settings_of(authority),
    )
    made.sync_database()
    daemon = made.start_scheduler().wait_log(NAME_DIFFERS)
    (line, *_more) = [each for each in daemon.log.splitlines() if NAME_DIFFERS in each]
    assert " ERROR " in line
    assert "guest:guest" not in daemon.log
    assert not daemon.is_announced


def is_encrypted(driver, connection):
    if driver == "mysql":
        return bool(connection.exec_driver_sql("SHOW STATUS LIKE 'Ssl_cipher'").one()[1])
    row = connection.exec_driver_sql(
        "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    ).one()
    return bool(row[0])
