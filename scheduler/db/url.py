"""What ``[database] connection`` says, checked before anything connects."""

from __future__ import annotations

from oslo_utils import strutils
from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from scheduler import errors

OPTION = "[database] connection"
SUPPORTED = ("sqlite", "mysql", "postgresql")


def parse(text: str | URL) -> URL:
    """The URL, with its dialect known and its driver installed.

    Raises ConfigurationError with one line that names the cause and shows no password.
    """
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        raise _bad("not a URL of the form dialect+driver://user:password@server/name") from None
    if url.drivername.startswith("mariadb"):
        # oslo.db translates the errors of "mysql" only, and the servers speak the same protocol.
        url = url.set(drivername=url.drivername.replace("mariadb", "mysql", 1))
    _check_driver(url)
    return url


def _check_driver(url: URL) -> None:
    name = url.get_backend_name()
    if name not in SUPPORTED:
        raise _bad(f"{name!r} is not one of the databases {', '.join(SUPPORTED)}")
    try:
        dialect = url.get_dialect()
        dialect.import_dbapi()
    except exc.NoSuchModuleError:
        raise _bad(f"no driver of the name {url.drivername!r} is known") from None
    except ImportError as error:
        raise _bad(f"the driver of {url.drivername!r} is not installed: {error}") from None
    if dialect.is_async:
        raise _bad(f"{url.drivername!r} is a driver for asyncio, which is not supported")


def _bad(reason: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(option=OPTION, reason=reason)


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
