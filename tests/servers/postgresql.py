"""A private PostgreSQL server, under an unprivileged account: it refuses to run as root."""

import signal

import psycopg

from tests.servers import programs
from tests.servers.certificates import Certificate
from tests.servers.private import LOOPBACK, START_SECONDS, PrivateServer, unique_name

PROGRAMS = (programs.INITDB, programs.POSTGRES)

_USER = "nova"


class PostgreSQL(PrivateServer):
    """One server; a database per test keeps tests apart.  Durability is switched off.

    With a *certificate* it offers TLS.
    """

    name = "postgresql"
    account = "postgres"  # made by Debian's package
    stop_signal = signal.SIGINT  # the usual one waits for clients to leave by themselves

    def __init__(self, certificate: Certificate | None = None) -> None:
        super().__init__()
        self._certificate = certificate
        self.port = self.reserve_port()
        self._data = self.folder / "data"

    def set_up(self) -> None:
        self.run_tool(
            [
                str(programs.find(programs.INITDB)),
                f"--pgdata={self._data}",
                f"--username={_USER}",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ]
        )

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "full_page_writes": "off",
            "synchronous_commit": "off",
        }
        if self._certificate is not None:
            chain, key = self._certificate.write(self.folder, **self._identity())
            settings |= {"ssl": "on", "ssl_cert_file": str(chain), "ssl_key_file": str(key)}
        options = [word for item in settings.items() for word in ("-c", "=".join(item))]
        return [str(programs.find(programs.POSTGRES)), "-D", str(self._data), *options]

    def answers(self) -> bool:
        try:
            self._ask("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database: str, host: str = LOOPBACK) -> str:
        return f"postgresql+psycopg://{_USER}@{host}:{self.port}/{database}"

    def create_database(self, name: str | None = None) -> str:
        name = name or unique_name("nova")
        self._ask(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database and disconnect whoever still uses it."""
        self._ask(f"DROP DATABASE {name} WITH (FORCE)")

    def _ask(self, statement: str) -> None:
        with psycopg.connect(
            host=LOOPBACK,
            port=self.port,
            user=_USER,
            dbname="postgres",
            connect_timeout=START_SECONDS,
            autocommit=True,
        ) as connection:
            connection.execute(statement)
