"""TLS to databases: where a URL asks for it, certificate and name are verified.

The drivers verify only if their own parameters ask for it, and PyMySQL not even then:
``ssl_verify_cert`` in a URL makes it drop ``ssl_ca``.  The parameters are rewritten here to what
an operator means by them.
"""

from __future__ import annotations

import ssl

from oslo_utils import strutils
from sqlalchemy.engine import URL

from scheduler import errors

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


def verified(url: URL, option: str) -> URL:
    """*url* such that TLS, where it asks for it, verifies the server's certificate and name.

    Raises ConfigurationError naming *option* for parameters that cannot be meant.
    """
    if url.drivername == "mysql+pymysql":
        return _mysql(url, option)
    is_asked_for = any(name in url.query for name in POSTGRESQL_FILES)
    if url.get_backend_name() == "postgresql" and is_asked_for and POSTGRESQL_MODE not in url.query:
        return url.update_query_dict({POSTGRESQL_MODE: FULL})
    return url


def weakness(url: URL) -> str | None:
    """The part of TLS that *url* leaves unverified by the operator's own choice, or None.

    *url* is one of :func:`verified`.
    """
    if url.query.get("ssl_check_hostname") == "false":
        return "ssl_check_hostname = false does not verify the server's name"
    mode = url.query.get(POSTGRESQL_MODE, FULL)
    if url.get_backend_name() == "postgresql" and mode not in (FULL, OFF):
        return f"sslmode = {mode} does not verify the server and its name; {FULL} does"
    return None


def is_asked_for(url: URL) -> bool:
    """True when *url*, one of :func:`verified`, allows TLS connections only."""
    if url.get_backend_name() == "mysql":
        return any(name in url.query for name in MYSQL_FILES)
    return url.query.get(POSTGRESQL_MODE) in POSTGRESQL_REQUIRED


def refusal(error: BaseException) -> str | None:
    """The line of *error* that says why the server's certificate, or its lack, is no good."""
    lines = str(error).splitlines()
    return next((each for each in lines if any(words in each for words in REFUSALS)), None)


def _mysql(url: URL, option: str) -> URL:
    query = dict(url.query)
    switches = {
        name: _switch(name, query.pop(name), option)
        for name in (MYSQL_DISABLED, *MYSQL_SWITCHES)
        if name in query
    }
    is_asked_for = any(name in query for name in MYSQL_FILES) or any(
        switches.get(name) for name in MYSQL_SWITCHES
    )
    if switches.get(MYSQL_DISABLED):
        if is_asked_for:
            raise _refused(option, "ssl_disabled = true, and yet other parameters ask for TLS")
        return url.set(query={**query, MYSQL_DISABLED: "true"})
    if not is_asked_for:
        return url.set(query=query)
    if switches.get("ssl_verify_cert") is False:
        reason = "ssl_verify_cert = false: TLS with just any server protects nothing; use ssl_ca"
        raise _refused(option, reason)
    if not any(name in query for name in MYSQL_AUTHORITIES):
        query |= _authorities_of_system(option)
    if False in (switches.get("ssl_check_hostname"), switches.get("ssl_verify_identity")):
        query["ssl_check_hostname"] = "false"
    return url.set(query=query)


def _switch(name: str, value: str | tuple[str, ...], option: str) -> bool:
    try:
        return bool(strutils.bool_from_string(value, strict=True))
    except ValueError as error:
        raise _refused(option, f"{name} = {value}: neither true nor false") from error


def _authorities_of_system(option: str) -> dict[str, str]:
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        return {"ssl_ca": paths.cafile}
    if paths.capath:
        return {"ssl_capath": paths.capath}
    raise _refused(option, "this system has no certificates of authorities; name them by ssl_ca")


def _refused(option: str, reason: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(option=option, reason=reason)
