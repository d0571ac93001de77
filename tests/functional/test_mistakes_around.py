"""Mistakes around the service: accounts, certificates, clocks, names; one line each."""

import contextlib
import datetime
import os
import pwd
import shutil
import socket
import ssl
import threading

import pytest

from scheduler import exit_codes
from tests.servers import mariadb as mariadb_server
from tests.servers import programs
from tests.servers.certificates import NAME
from tests.servers.fixtures import require
from tests.servers.mariadb import MariaDB
from tests.servers.private import LOOPBACK
from tests.world import process
from tests.world.clock import Clock
from tests.world.terminal import DAEMON, MANAGE, assert_named, say

#: Options with a file that is another account's, and what is said of it.
NOT_MINE = {
    "log": ("[DEFAULT]\nlog_file = {}", ("nova.conf:6: [DEFAULT] log_file: ", "may write there")),
    "logging file": (
        "[DEFAULT]\nlog_config_append = {}",
        ("nova.conf:6: [DEFAULT] log_config_append: ", "this user cannot read it"),
    ),
    "authority of the broker": (
        "[oslo_messaging_rabbit]\nssl = true\nssl_ca_file = {}",
        ("nova.conf:7: [oslo_messaging_rabbit] ssl_ca_file: ", "this user cannot read"),
    ),
    "authority of the database": (
        "[database]\nconnection = mysql+pymysql://u:s3cret@127.0.0.1:1/nova?ssl_ca={}",
        ("nova.conf:6: [database] connection: ssl_ca = ", "this user cannot read it"),
    ),
    "database": (
        "[database]\nconnection = sqlite:///{}",
        ("nova.conf:6: [database] connection: ", "see whether this user may write there"),
    ),
}
#: Root without the right to read what it may not.
AS_ANYBODY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.fixture
def not_mine(tmp_path):
    """A file of another account, which nobody else may read."""
    if os.geteuid() != 0 or shutil.which(AS_ANYBODY[0]) is None:
        pytest.skip("giving a file away needs root, and giving up rights setpriv")
    path = tmp_path / "not_mine"
    path.write_text("[loggers]\nkeys = root\n")
    path.chmod(0o600)
    os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
    return path


@pytest.mark.parametrize(("lines", "names"), NOT_MINE.values(), ids=NOT_MINE.keys())
def test_a_file_that_the_daemon_may_not_read(tmp_path, tables, not_mine, lines, names):
    status, said = say(tmp_path, DAEMON, lines.format(not_mine), tables, run_by=AS_ANYBODY)
    assert status == exit_codes.CONFIGURATION, "\n".join(said)
    assert_named(said, names)


def test_a_configuration_that_the_daemon_may_not_read(tmp_path, not_mine):
    folder = tmp_path / "conf.d"
    folder.mkdir(mode=0o700)
    os.chown(folder, not_mine.stat().st_uid, -1)
    for option, path in (("--config-file", not_mine), ("--config-dir", folder)):
        done = process.run(DAEMON, option, str(path), folder=tmp_path, run_by=AS_ANYBODY)
        assert done.returncode == exit_codes.CONFIGURATION
        [line] = done.stderr.splitlines()
        assert str(path) in line
        assert "this user may not read it" in line


EXPIRED = ("certificate has expired", "renew it, or see whether this machine's clock")


@pytest.fixture(scope="module")
def expired(authority):
    return authority.certificate_until(datetime.datetime.now() - datetime.timedelta(days=1))


def test_a_certificate_of_the_broker_that_has_expired(tmp_path, tables, authority, expired):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*expired.write(tmp_path))
    with socket.create_server((LOOPBACK, 0)) as server:

        def refuse():
            with contextlib.suppress(ValueError):  # until the server is closed
                while server.fileno() >= 0:
                    with contextlib.suppress(OSError):
                        context.wrap_socket(server.accept()[0], server_side=True).close()

        threading.Thread(target=refuse, daemon=True).start()
        url = f"rabbit://u:s3cret@{NAME}:{server.getsockname()[1]}/"
        lines = f"[oslo_messaging_rabbit]\nssl = true\nssl_ca_file = {authority.file}"
        status, said = say(tmp_path, f"{MANAGE} broker check", lines, tables, url)
    assert status == exit_codes.BROKER_TLS, "\n".join(said)
    assert_named(said, ("TLS failed", *EXPIRED))


def test_a_certificate_of_the_database_that_has_expired(tmp_path, authority, expired):
    require(mariadb_server.PROGRAMS)
    with MariaDB(certificate=expired) as server:
        url = f"{server.url('mysql', host=NAME)}?ssl_ca={authority.file}"
        for command in (DAEMON, f"{MANAGE} host list"):
            status, said = say(tmp_path, command, "", url)
            assert status == exit_codes.FAILURE, "\n".join(said)
            assert_named(said, ("nova.conf:4: [database] connection: ", *EXPIRED))


def test_two_daemons_of_one_name_and_a_record_that_is_deleted(
    deployment, transport_url, sqlite_url
):
    settings = {"DEFAULT": {"report_interval": 1}}
    cloud = deployment(transport_url, sqlite_url, settings=settings)
    cloud.sync_database()
    named = "[DEFAULT] host: another daemon serves as 'controller'"
    first, second = (cloud.start_scheduler().wait_ready() for _each in range(2))
    assert (named in first.log, named in second.log) == (False, True)
    assert "give each daemon a name of its own" in second.log
    second.terminate()
    first.terminate()
    again = cloud.start_scheduler().wait_ready()
    assert named not in again.log  # a restart within seconds
    with cloud.database() as database, database.write() as connection:
        connection.exec_driver_sql("DELETE FROM services")
    again.wait_log("service on host controller is gone, and was made again. To be rid of")
    with cloud.database() as database, database.read() as connection:
        assert connection.exec_driver_sql("SELECT host FROM services").all() == [("controller",)]


@pytest.mark.parametrize(
    ("seconds", "said"), [(3600, "s ahead of"), (-3600, "s behind")], ids=["ahead", "behind"]
)
def test_a_clock_that_is_an_hour_off(deployment, tmp_path, mariadb_url, seconds, said):
    require((programs.FAKETIME,))
    clock = Clock(tmp_path / "clock")
    clock.jump(seconds)
    cloud = deployment("rabbit://u:p@127.0.0.1:1/", mariadb_url)
    cloud.sync_database()
    daemon = cloud.start_scheduler(extra_environment=clock.environment)
    daemon.wait_log(f"{said} the database server's, so services look down to one another; set both")
