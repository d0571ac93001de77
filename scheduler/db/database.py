"""One database: its engine, its transactions and their retries.

Built on oslo.db, so its options, its translated exceptions (``oslo_db.exception``) and its guard
against connections that were open across a fork all hold (reference page config, section 7).
"""

import contextlib
import pathlib
import random
import sqlite3
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeVar

import sqlalchemy
from oslo_config import cfg
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exception
from oslo_db import options as oslo_db_options
from oslo_db.sqlalchemy import engines
from sqlalchemy import event, exc, pool
from sqlalchemy.engine import URL, Connection, Dialect, Engine

from scheduler import errors
from scheduler.conf import database as database_conf
from scheduler.conf.effective import masked
from scheduler.db import layout as layouts
from scheduler.db import url as db_url
from scheduler.db.layout import Layout
from scheduler.db.limits import DEFAULT_LIMITS, TransactionLimits
from scheduler.threads import in_thread

Result = TypeVar("Result")

#: Passed to oslo.db's ``create_engine`` as they are.
ENGINE_OPTIONS = (
    *("sqlite_synchronous", "mysql_sql_mode", "mysql_wsrep_sync_wait", "connection_recycle_time"),
    *("connection_debug", "connection_trace", "max_pool_size", "max_overflow", "pool_timeout"),
    *("max_retries", "retry_interval"),
)

#: Passed to oslo.db's ``wrap_db_retry``, under the name on the right.
RETRY_OPTIONS = {
    "db_max_retries": "max_retries",
    "db_retry_interval": "retry_interval",
    "db_inc_retry_interval": "inc_retry_interval",
    "db_max_retry_interval": "max_retry_interval",
}

EMBEDDED_FILE = "nova.sqlite"
SQLITE_BUSY_TIMEOUT_SECONDS = 30
SQLITE_WRITE_AHEAD = "PRAGMA journal_mode = WAL"
SQLITE_BUSY_TIMEOUT = f"PRAGMA busy_timeout = {SQLITE_BUSY_TIMEOUT_SECONDS * 1000}"
SQLITE_POLL_SECONDS = (0.001, 0.01)
#: Codes for a lock that was not to be had in time, of PostgreSQL and of MySQL and MariaDB, and
#: PostgreSQL's for a serialisation failure.
LOCK_TIMEOUTS = ("55P03", 1205)
POSTGRESQL_RETRYABLE = ("40001", "55P03")
IMMEDIATE = "nova_immediate"
#: Queries for the server's time.
SERVER_TIMES = {
    "mysql": "SELECT UNIX_TIMESTAMP(NOW(6))",
    "postgresql": "SELECT EXTRACT(EPOCH FROM clock_timestamp())",
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
}
#: Longest wait of a command for a connection, in seconds.
COMMAND_SECONDS = 8
#: Exceptions of a database that does not answer, or not as it should.
FAILURES = (db_exception.DBError, exc.SQLAlchemyError)


def configured_settings(conf: cfg.ConfigOpts, group: str = database_conf.GROUP) -> dict[str, Any]:
    """The options of ``[database]``, or of another *group* like it, by today's names."""
    return {opt.name: conf[group][opt.name] for opt in oslo_db_options.database_opts}


class Database:
    """Connects on first use only, so that a parent may hand it to the workers it forks."""

    def __init__(
        self,
        url: str | URL,
        *,
        settings: Mapping[str, Any] | None = None,
        is_embedded_default: bool = False,
        is_read_only: bool = False,
        option: str = db_url.OPTION,
        silence_timeout_seconds: int = 0,
        connect_seconds: int = 0,
        limits: TransactionLimits = DEFAULT_LIMITS,
    ) -> None:
        """*settings* are the values of ``[database]`` that differ from oslo.db's defaults.

        A server that is silent for *silence_timeout_seconds* is given up; 0: never.  The first
        connection is waited for *connect_seconds*, whatever the settings say; 0: as they say.
        *option* is where *url* comes from; ConfigurationError names it if the URL is unusable.
        """
        defaults = {opt.name: opt.default for opt in oslo_db_options.database_opts}
        self._settings = {**defaults, **(settings or {})}
        self.option = option
        self.is_read_only = is_read_only
        parsed = db_url.parse(url, option)
        url = db_url.with_parameters(parsed, self._settings["connection_parameters"])
        self.url = db_url.with_verified_tls(url, option)
        #: ``sqlite``, ``mysql`` or ``postgresql``.
        self.dialect_name = self.url.get_backend_name()
        self.silence_timeout_seconds = silence_timeout_seconds
        self.connect_seconds = connect_seconds
        self._refusal: errors.NovaException | None = None
        self._limits = limits
        self.is_embedded_default = is_embedded_default
        self._engine: Engine | None = None
        self._engine_lock = threading.Lock()
        self._layout: Layout | None = None
        self._keepers: weakref.WeakSet[Any] = weakref.WeakSet()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, *, for_command: bool = False) -> Self:
        """The database of ``[database] connection``; unset, a SQLite file below ``state_path``.

        One *for_command* gives up a server that is away, and waits for its answers for ever.
        """
        settings, group = configured_settings(conf), conf.database
        url = settings["connection"]
        path = pathlib.Path(conf.state_path).absolute() / EMBEDDED_FILE
        return cls(
            url or URL.create("sqlite", database=str(path)),
            settings=settings,
            is_embedded_default=not url,
            is_read_only=group.read_only,
            silence_timeout_seconds=0 if for_command else group.silence_timeout_seconds,
            connect_seconds=COMMAND_SECONDS if for_command else 0,
        )

    def sibling(
        self, url: str | URL, option: str, *, settings: Mapping[str, Any] = {}, **others: Any
    ) -> "Database":
        """The database of *url*, which *option* names: used as this one but for what is given."""
        alike = ("is_read_only", "silence_timeout_seconds", "connect_seconds")
        how = {name: getattr(self, name) for name in alike} | others
        return Database(url, option=option, settings={**self._settings, **settings}, **how)

    @property
    def masked_url(self) -> str:
        return db_url.masked(self.url)

    def unusable(self, error: Exception) -> errors.NovaException:
        """The error for the operator after *error*: one line without SQL and secrets."""
        if isinstance(error, errors.NovaException):
            return error
        original = getattr(error, "inner_exception", None) or error
        original = getattr(original, "orig", None) or original
        lines = str(original).strip().splitlines() or [type(original).__name__]
        cause = masked(db_url.tls_refusal(original) or lines[0])
        reason = f"{self.masked_url} cannot be used: {cause}{db_url.advice(cause)}"
        return errors.DatabaseUnusable(option=self.option, reason=reason)

    @contextlib.contextmanager
    def naming_itself(self) -> Iterator[None]:
        """Within it failures are raised as errors for the operator, which name the database."""
        try:
            yield
        except FAILURES as error:
            raise self.unusable(error) from error

    @property
    def engine(self) -> Engine:
        """The engine; the first call waits for the server as ``max_retries`` allows."""
        with self._engine_lock:
            if self._engine is None:
                self._engine = self._create_engine()
            return self._engine

    @property
    def layout(self) -> Layout:
        """Tables and columns that there are, as of the first use that found tables."""
        engine = self.engine
        with self._engine_lock:
            if self._layout is None:
                with engine.connect() as connection:
                    self._layout = layouts.detect(connection)
                if self._layout is not None:
                    layouts.listen(engine, self._layout)
            return self._layout or layouts.COMPLETE

    def _create_engine(self) -> Engine:
        arguments = {name: self._settings[name] for name in ENGINE_OPTIONS}
        url = self.url
        db_url.check_files(url, self.option)
        if self.silence_timeout_seconds:
            url = db_url.with_timeout(url, self.silence_timeout_seconds)
        if self.connect_seconds and self.dialect_name != "sqlite":
            self._require_answer(url)
            arguments["max_retries"] = 0
        if db_url.requires_tls(url):
            self._check_certificate(url)
        engine = engines.create_engine(url, sqlite_fk=True, **arguments)
        if self.dialect_name == "sqlite":
            event.listen(engine, "connect", _set_up_sqlite)
            if not self.is_read_only:
                event.listen(engine, "connect", lambda raw, _: raw.execute(SQLITE_WRITE_AHEAD))
            event.listen(engine, "begin", _begin_immediate)
        else:
            event.listen(engine, "connect", self._connected)
        # oslo.db has connected already, to see whether the server is there: forget that
        # connection, which the listeners above have not seen.
        engine.dispose()
        return engine

    def _connected(self, connection: Any, _record: object) -> None:
        if self.dialect_name == "mysql":
            # Each statement sees what is committed, not the snapshot of the first one.
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        self._limits.put_in_force(self.dialect_name, connection)

    def _check_certificate(self, url: URL) -> None:
        """Raise ConfigurationError if the server is the wrong one: waiting would not help."""
        try:
            _connect_once(url)
        except exc.DBAPIError as error:
            if db_url.tls_refusal(error) is not None:
                raise self.unusable(error) from error

    def _require_answer(self, url: URL) -> None:
        """Raise ConfigurationError unless a connection can be had in time, which is tried once."""
        if self._refusal is not None:
            raise self._refusal
        seconds = self.connect_seconds
        attempt = in_thread(lambda: _connect_once(db_url.with_timeout(url, seconds)))
        try:
            attempt.result(seconds)
        except TimeoutError as error:
            self._refusal = self.unusable(TimeoutError(f"no connection within {seconds} s"))
            raise self._refusal from error
        except FAILURES as error:
            self._refusal = self.unusable(error)
            raise self._refusal from error

    def connect(self, **options: Any) -> Connection:
        """A connection with execution *options*, whose layout is known to ``layout.layout_of``."""
        options[layouts.OPTION] = self.layout
        return self.engine.connect().execution_options(**options)

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection in a transaction for reading: it sees what was committed before."""
        with self.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection in a transaction that an error rolls back; raises DatabaseReadOnly."""
        self.check_writable()
        with self.connect(**{IMMEDIATE: True}) as connection, connection.begin():
            yield connection

    def check_writable(self) -> None:
        """Raise DatabaseReadOnly where nothing may be written."""
        if self.is_read_only:
            raise errors.DatabaseReadOnly(url=self.masked_url)

    def write_retrying(self, function: Callable[[Connection], Result]) -> Result:
        """Call *function* in a write transaction, again on a deadlock or a lock timeout.

        Also again when the connection broke before the commit was sent: nothing was written then.
        *function* must have no other effects.
        """
        committing = False

        def attempt() -> Result:
            nonlocal committing
            committing = False
            with self.write() as connection:
                result = function(connection)
                committing = True
                return result

        return self.retrying(attempt, retries_broken=lambda: not committing)

    def retrying(
        self, attempt: Callable[[], Result], retries_broken: Callable[[], bool] = lambda: False
    ) -> Result:
        """Call *attempt*, again on a deadlock or a lock timeout, as ``[database]`` says.

        After a broken connection it is called again only if *retries_broken* says so.
        """

        def is_retryable(error: BaseException) -> bool:
            if isinstance(error, db_exception.DBConnectionError):
                return retries_broken()
            return _is_lock_failure(error)

        retry = oslo_db_api.wrap_db_retry(
            retry_on_deadlock=True,
            exception_checker=is_retryable,
            **{name: self._settings[key] for key, name in RETRY_OPTIONS.items()},
        )
        return retry(attempt)()

    def server_time(self) -> float | None:
        """The time that the server has, in seconds since the epoch; None if it does not answer."""
        question = sqlalchemy.text(SERVER_TIMES[self.dialect_name])
        try:
            with self.engine.connect() as connection:
                return float(connection.execute(question).scalar_one())
        except FAILURES:
            return None

    def remember(self, keeper: Any) -> None:
        """*keeper* keeps a connection of this database, to be closed with the others."""
        self._keepers.add(keeper)

    def dispose(self) -> None:
        """Close the connections, pooled and kept; the next use opens new ones."""
        for keeper in list(self._keepers):
            keeper.close()
        with self._engine_lock:
            if self._engine is not None:
                self._engine.dispose()

    #: As one that another database remembers.
    close = dispose


def _connect_once(url: URL) -> None:
    probe = sqlalchemy.create_engine(url, poolclass=pool.NullPool)
    try:
        probe.connect().close()
    finally:
        probe.dispose()


def is_atomic(dialect: Dialect) -> bool:
    """True where one statement can be all of a transaction, and undoes itself if it fails."""
    return dialect.name == "postgresql" or bool(getattr(dialect, "is_mariadb", False))


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    """Wait for locks, and add a function that MySQL has built in."""
    connection.execute(SQLITE_BUSY_TIMEOUT)
    connection.create_function(
        "crc32", 1, lambda text: zlib.crc32(text.encode()), deterministic=True
    )


def _begin_immediate(connection: Connection) -> None:
    """Take SQLite's write lock at the start of a transaction that is going to write.

    Taken later, when another process has written in between, it is refused at once whatever the
    timeout is.  oslo.db's listener came first and has begun without the lock: begin again.
    """
    if not connection.get_execution_options().get(IMMEDIATE):
        return
    connection.exec_driver_sql("COMMIT")
    # SQLite's own waiting would stop every greenlet, also the one that holds the lock.
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    deadline = time.monotonic() + SQLITE_BUSY_TIMEOUT_SECONDS
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except exc.OperationalError as error:
                if not _is_lock_failure(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(*SQLITE_POLL_SECONDS))
    finally:
        connection.exec_driver_sql(SQLITE_BUSY_TIMEOUT)


def refused_value(error: BaseException) -> str | None:
    """The text of the driver or server if *error* is about a value that no column holds."""
    if isinstance(error, db_exception.DBInvalidUnicodeParameter):
        return str(error)
    cause = getattr(error, "inner_exception", None) or error
    if isinstance(error, db_exception.DBDataError) or isinstance(cause, exc.DataError | ValueError):
        return str(getattr(cause, "orig", cause))
    return None


def is_lock_timeout(error: BaseException) -> bool:
    """True when a statement has waited for a lock for too long."""
    original = getattr(getattr(error, "inner_exception", error), "orig", None)
    codes = (getattr(original, "sqlstate", None), *getattr(original, "args", ())[:1])
    return any(each in LOCK_TIMEOUTS for each in codes)


def _is_lock_failure(error: BaseException) -> bool:
    """True for a lock failure, wrapped by oslo.db or not, that oslo.db has no class for."""
    original = getattr(getattr(error, "inner_exception", error), "orig", None)
    if isinstance(original, sqlite3.OperationalError):
        return original.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(original, "sqlstate", None) in POSTGRESQL_RETRYABLE
