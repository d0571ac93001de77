"""A private MariaDB server."""

import os
import pwd
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql

from tests.servers import programs
from tests.servers.certificates import Certificate
from tests.servers.private import LOOPBACK, START_SECONDS, PrivateServer, unique_name

PROGRAMS = (programs.MARIADBD, programs.MARIADB_INSTALL_DB)

_USER = "nova"
_PASSWORD = "secret"


class MariaDB(PrivateServer):
    """One server; a database per test keeps tests apart.

    It is not *durable*: what it committed in the last second is lost when it is killed.  With a
    *certificate* it offers TLS.  *data* is where to have it; *options* go to the command line.
    """

    name = "mariadb"

    def __init__(
        self,
        *,
        durable: bool = False,
        certificate: Certificate | None = None,
        data: Path | None = None,
        options: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._certificate = certificate
        self._options = options
        self._is_durable = durable
        self.port = self.reserve_port()
        self._data = data or self.folder / "data"
        self._grants = self.folder / "grants.sql"
        # A server that starts removes the temporary tables that it finds, also those of others.
        self._own_options = (
            f"--user={pwd.getpwuid(os.getuid()).pw_name}",
            f"--tmpdir={self.folder}",
        )

    def set_up(self) -> None:
        self.run_tool(
            [
                str(programs.find(programs.MARIADB_INSTALL_DB)),
                "--no-defaults",
                f"--datadir={self._data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                *self._own_options,
            ]
        )
        self._grants.write_text(
            f"CREATE USER IF NOT EXISTS {_USER}@'%' IDENTIFIED BY '{_PASSWORD}';\n"
            f"GRANT ALL ON *.* TO {_USER}@'%' WITH GRANT OPTION;\n",
            encoding="utf-8",
        )

    def command(self) -> list[str]:
        tls = []
        if self._certificate is not None:
            chain, key = self._certificate.write(self.folder)
            tls = [f"--ssl-cert={chain}", f"--ssl-key={key}"]
        return [
            str(programs.find(programs.MARIADBD)),
            "--no-defaults",
            f"--datadir={self._data}",
            f"--socket={self.folder / 'socket'}",
            f"--port={self.port}",
            f"--bind-address={LOOPBACK}",
            f"--pid-file={self.folder / 'pid'}",
            f"--init-file={self._grants}",
            "--innodb-buffer-pool-size=64M",
            "--innodb-doublewrite=0",
            f"--innodb-flush-log-at-trx-commit={int(self._is_durable)}",
            "--skip-log-bin",
            "--skip-name-resolve",
            *self._own_options,
            *tls,
            *self._options,
        ]

    def answers(self) -> bool:
        try:
            self._ask("SELECT 1")
        except pymysql.OperationalError:
            return False
        return True

    def url(self, database: str, user: str = _USER, host: str = LOOPBACK) -> str:
        return f"mysql+pymysql://{user}:{_PASSWORD}@{host}:{self.port}/{database}"

    def create_account(self, user: str, grants: Sequence[str]) -> None:
        """Make an account with nothing but *grants*, each as ``SELECT ON database.*``."""
        self._ask(f"CREATE USER {user}@'%' IDENTIFIED BY '{_PASSWORD}'")
        for grant in grants:
            self.grant(grant, user)

    def grant(self, rights: str, user: str) -> None:
        self._ask(f"GRANT {rights} TO {user}@'%'")

    def drop_account(self, user: str) -> None:
        self._ask(f"DROP USER {user}@'%'")

    def create_database(self, name: str | None = None) -> str:
        name = name or unique_name("nova")
        self._ask(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database; waits for transactions that still use it."""
        self._ask(f"DROP DATABASE {name}")

    def _ask(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        connection = pymysql.connect(
            host=LOOPBACK,
            port=self.port,
            user=_USER,
            password=_PASSWORD,
            connect_timeout=START_SECONDS,
            autocommit=True,
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())
