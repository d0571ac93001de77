"""Database URLs: checked before anything connects, and the templates of ``cell_mappings``.

TLS, where a URL asks for it, verifies certificate and name.  The drivers do so only if their own
parameters ask for it, and PyMySQL not even then: ``ssl_verify_cert`` makes it drop ``ssl_ca``.
The parameters are rewritten here to what an operator means by them.
"""

import functools
import os
import re
import ssl
import urllib.parse
from typing import Any

from oslo_log import log as logging
from oslo_utils import strutils
from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from scheduler import errors

LOG = logging.getLogger(__name__)

OPTION = "[database] connection"
SUPPORTED = ("sqlite", "mysql", "postgresql")
#: Parameters of PyMySQL with which TLS is asked for, as SQLAlchemy hands them on.
MYSQL_FILES = ("ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_cipher")
MYSQL_AUTHORITIES = ("ssl_ca", "ssl_capath")
MYSQL_SWITCHES = ("ssl", "ssl_check_hostname", "ssl_verify_cert", "ssl_verify_identity")
MYSQL_DISABLED = "ssl_disabled"
#: Parameters of libpq.
POSTGRESQL_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir")
POSTGRESQL_MODE = "sslmode"
FULL = "verify-full"
OFF = "disable"
POSTGRESQL_REQUIRED = ("require", "verify-ca", FULL)
#: Error texts of the drivers for a wrong server or one without TLS: a retry is of no use.
REFUSALS = (
    "certificate verify failed",
    "does not match host name",
    "SSL is required but",
    "server does not support SSL",
    "root certificate file",
)

#: Advice by words of the drivers' errors.
ADVICE = (
    ("(?i)certificate has expired", "renew it, or see whether this machine's clock is right"),
    ("(?i)access denied|authentication failed", "see user and password there"),
    ("(?i)unknown database|database .* does not exist", "create it, or correct its name"),
    ("(?i)is full|no space", "make room there"),
    ("(?i)unable to open|read-?only", "see whether this user may write there"),
    ("(?i)certificate|SSL", "see the certificate of the server, and ssl_ca"),
    ("(?i)connect|timed out|resol|unknown host", "is it running, and is this its address?"),
)


def parse(text: str | URL, option: str = OPTION) -> URL:
    """The URL, its driver installed; ConfigurationError with *option* and cause, no password."""
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        reason = "not a URL of the form dialect+driver://user:password@server/name"
        raise _refused(option, reason) from None
    url = _as_installed(url, option)
    if url.drivername.startswith("mariadb"):
        # oslo.db translates the errors of "mysql" only, and the servers speak the same protocol.
        url = url.set(drivername=url.drivername.replace("mariadb", "mysql", 1))
    refusal = _refusal(url)
    if refusal is not None:
        raise _refused(option, refusal)
    return url


@functools.cache
def _as_installed(url: URL, option: str) -> URL:
    """*url* of an older file with what there is today; each is warned about once."""
    if url.drivername == "mysql":
        LOG.warning("%s: mysql:// is deprecated; write mysql+pymysql://", option)
        url = url.set(drivername="mysql+pymysql")
    if url.query.get("plugin") == "dbcounter":
        LOG.warning("%s: plugin=dbcounter counts queries for devstack; it is left out", option)
        url = url.difference_update_query(["plugin"])
    return url


def _refusal(url: URL) -> str | None:
    name = url.get_backend_name()
    if name not in SUPPORTED:
        return f"{name!r} is not one of the databases {', '.join(SUPPORTED)}"
    try:
        dialect = url.get_dialect()
        dialect.import_dbapi()
    except exc.NoSuchModuleError:
        return f"no driver of the name {url.drivername!r} is known"
    except ImportError as error:
        return f"the driver of {url.drivername!r} is not installed: {error}"
    if dialect.is_async:
        return f"{url.drivername!r} is a driver for asyncio, which is not supported"
    return None


def masked(url: URL) -> str:
    """The URL for people and logs: passwords, also those among its parameters, as ``***``."""
    return strutils.mask_password(url.render_as_string(hide_password=True))


def with_parameters(url: URL, parameters: str) -> URL:
    """The URL with ``[database] connection_parameters``, and on MySQL with a full character set."""
    if parameters:
        url = url.update_query_string(parameters, append=True)
    if url.get_backend_name() == "mysql" and "charset" not in url.query:
        url = url.update_query_dict({"charset": "utf8mb4"})
    return url


def with_timeout(url: URL, timeout_seconds: int) -> URL:
    """The URL such that its driver gives up a server that is silent for that long."""
    wanted = {}
    if url.drivername == "mysql+pymysql":
        wanted = {"connect_timeout": timeout_seconds, "read_timeout": timeout_seconds}
    elif url.drivername == "postgresql+psycopg":
        milliseconds = timeout_seconds * 1000
        wanted = {"connect_timeout": timeout_seconds, "tcp_user_timeout": milliseconds}
    new = {name: str(value) for name, value in wanted.items() if name not in url.query}
    return url.update_query_dict(new)


def advice(cause: str) -> str:
    """The end of an error with that *cause*: the next step, or nothing."""
    found = next((text for words, text in ADVICE if re.search(words, cause)), None)
    return "" if found is None else f"; {found}"


def fill_template(text: str, base: str | None, column: str, option: str) -> str:
    """*text* with ``{fields}`` filled from *base*, or as it is, and logged (page database, 7)."""
    if "{" not in text:
        return text
    if not base:
        LOG.error("Cell mapping %s is a template, but %s is not set", column, option)
        return text
    url = urllib.parse.urlparse(base)
    names = ("scheme", "username", "password", "hostname", "port", "query", "fragment")
    try:
        # A part that *base* lacks is None, which becomes that very word.
        fields = {name: getattr(url, name) for name in names}
        return text.format(**fields, path=url.path.lstrip("/"))
    except (KeyError, IndexError, ValueError, AttributeError):
        # The error would show a piece of the URL, which may be a piece of its password.
        LOG.error("Cell mapping %s is a template that cannot be filled from %s", column, option)
        return text


def with_verified_tls(url: URL, option: str) -> URL:
    """*url* with TLS, if asked for, that verifies certificate and name; ConfigurationError."""
    if url.drivername == "mysql+pymysql":
        return _mysql(url, option)
    is_asked_for = any(name in url.query for name in POSTGRESQL_FILES)
    if url.get_backend_name() == "postgresql" and is_asked_for and POSTGRESQL_MODE not in url.query:
        return url.update_query_dict({POSTGRESQL_MODE: FULL})
    return url


def tls_weakness(url: URL) -> str | None:
    """The check of TLS that *url*, of :func:`with_verified_tls`, leaves out by choice, or None."""
    if url.query.get("ssl_check_hostname") == "false":
        return "ssl_check_hostname = false does not verify the server's name"
    mode = url.query.get(POSTGRESQL_MODE, FULL)
    if url.get_backend_name() == "postgresql" and mode not in (FULL, OFF):
        return f"sslmode = {mode} does not verify the server and its name; {FULL} does"
    return None


def requires_tls(url: URL) -> bool:
    """True when *url*, one of :func:`with_verified_tls`, allows TLS connections only."""
    if url.get_backend_name() == "mysql":
        return any(name in url.query for name in MYSQL_FILES)
    return url.query.get(POSTGRESQL_MODE) in POSTGRESQL_REQUIRED


def check_files(url: URL, option: str) -> None:
    """Raise ConfigurationError for a file of TLS that PyMySQL could not read."""
    for name in MYSQL_FILES[:-1]:
        path = url.query.get(name)
        if path and not os.access(str(path), os.R_OK):
            raise _refused(option, f"{name} = {path}: this user cannot read it")


def tls_refusal(error: BaseException) -> str | None:
    """The line of *error* that says why the server's certificate, or its lack, is no good."""
    lines = str(error).splitlines()
    return next((each for each in lines if any(words in each for words in REFUSALS)), None)


def _mysql(url: URL, option: str) -> URL:
    query = dict(url.query)
    switches = {name: _popped(query, name, option) for name in (MYSQL_DISABLED, *MYSQL_SWITCHES)}
    is_asked_for = any(name in query for name in MYSQL_FILES)
    is_asked_for |= any(switches[name] for name in MYSQL_SWITCHES)
    if switches[MYSQL_DISABLED]:
        if is_asked_for:
            raise _refused(option, "ssl_disabled = true, and yet other parameters ask for TLS")
        query[MYSQL_DISABLED] = "true"
    if not is_asked_for:
        return url.set(query=query)
    if switches["ssl_verify_cert"] is False:
        reason = "ssl_verify_cert = false: TLS with just any server protects nothing; use ssl_ca"
        raise _refused(option, reason)
    if not any(name in query for name in MYSQL_AUTHORITIES):
        paths = ssl.get_default_verify_paths()
        if not paths.cafile and not paths.capath:
            reason = "this system has no certificates of authorities; name them by ssl_ca"
            raise _refused(option, reason)
        query |= {"ssl_ca": paths.cafile} if paths.cafile else {"ssl_capath": paths.capath}
    if False in (switches["ssl_check_hostname"], switches["ssl_verify_identity"]):
        query["ssl_check_hostname"] = "false"
    return url.set(query=query)


def _popped(query: dict[str, Any], name: str, option: str) -> bool | None:
    value = query.pop(name, None)
    try:
        return None if value is None else bool(strutils.bool_from_string(value, strict=True))
    except ValueError as error:
        raise _refused(option, f"{name} = {value}: neither true nor false") from error


def _refused(option: str, reason: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(option=option, reason=reason)
