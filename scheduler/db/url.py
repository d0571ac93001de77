"""Database URLs: checked before anything connects, and the templates of ``cell_mappings``."""

from __future__ import annotations

import urllib.parse

from oslo_log import log as logging
from oslo_utils import strutils
from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url

from scheduler import errors

LOG = logging.getLogger(__name__)

OPTION = "[database] connection"
SUPPORTED = ("sqlite", "mysql", "postgresql")


def parse(text: str | URL, option: str = OPTION) -> URL:
    """The URL, with its dialect known and its driver installed.

    Raises ConfigurationError with one line that names *option* and the cause, and no password.
    """
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        reason = "not a URL of the form dialect+driver://user:password@server/name"
        raise errors.ConfigurationError(option=option, reason=reason) from None
    if url.drivername.startswith("mariadb"):
        # oslo.db translates the errors of "mysql" only, and the servers speak the same protocol.
        url = url.set(drivername=url.drivername.replace("mariadb", "mysql", 1))
    refusal = _refusal(url)
    if refusal is not None:
        raise errors.ConfigurationError(option=option, reason=refusal)
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
    of_driver = {
        "mysql+pymysql": {"connect_timeout": timeout_seconds, "read_timeout": timeout_seconds},
        "postgresql+psycopg": {
            "connect_timeout": timeout_seconds,
            "tcp_user_timeout": timeout_seconds * 1000,
        },
    }
    wanted = of_driver.get(url.drivername, {})
    new = {name: str(value) for name, value in wanted.items() if name not in url.query}
    return url.update_query_dict(new)


def fill_template(text: str, base: str | None, column: str, option: str) -> str:
    """*text* of *column* with its ``{fields}`` filled from the URL *base* that *option* holds.

    What cannot be filled is logged and stays as it is (reference page database, section 7).
    """
    if "{" not in text:
        return text
    if not base:
        LOG.error("Cell mapping %s is a template, but %s is not set", column, option)
        return text
    try:
        return text.format(**_template_fields(base))
    except (KeyError, IndexError, ValueError, AttributeError):
        # The error would show a piece of the URL, which may be a piece of its password.
        LOG.error("Cell mapping %s is a template that cannot be filled from %s", column, option)
        return text


def _template_fields(base: str) -> dict[str, object]:
    """The fields of a template; a part that *base* lacks is None, which becomes that very word."""
    url = urllib.parse.urlparse(base)
    return {
        "scheme": url.scheme,
        "username": url.username,
        "password": url.password,
        "hostname": url.hostname,
        "port": url.port,
        "path": url.path.lstrip("/"),
        "query": url.query,
        "fragment": url.fragment,
    }
