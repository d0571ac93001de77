"""The URLs of ``cell_mappings``, which may be templates (reference page database, section 7)."""

from __future__ import annotations

import urllib.parse

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def filled(text: str, base: str | None, column: str, option: str) -> str:
    """*text* of *column* with its ``{fields}`` filled from the URL *base* that *option* holds.

    What cannot be filled is logged and stays as it is.
    """
    if "{" not in text:
        return text
    if not base:
        LOG.error("Cell mapping %s is a template, but %s is not set", column, option)
        return text
    try:
        return text.format(**_parts(base))
    except (KeyError, IndexError, ValueError, AttributeError):
        # The error would show a piece of the URL, which may be a piece of its password.
        LOG.error("Cell mapping %s is a template that cannot be filled from %s", column, option)
        return text


def _parts(base: str) -> dict[str, object]:
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
