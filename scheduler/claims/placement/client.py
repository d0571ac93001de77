"""Placement's REST API, as far as claims need it; no call here holds a lock.

Connections are kept and shared by all threads of a process.
"""

from __future__ import annotations

from typing import Any, Final

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading, noauth
from keystoneauth1.adapter import Adapter
from oslo_config import cfg

from scheduler import errors
from scheduler.conf import claims as conf_claims

#: The version that candidates are asked for with, and the one that existing allocations are.
CANDIDATES_VERSION: Final = "1.36"
READING_VERSION: Final = "1.28"

OK, NO_CONTENT, NOT_FOUND = 200, 204, 404
_NOAUTH = "noauth"
_TEXT_SHOWN = 300


class Unavailable(Exception):
    """Placement was not reached, or did not do what it should; the text says why."""


class PlacementClient:
    """One Placement service; raises :class:`Unavailable` when it cannot be talked to."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> PlacementClient:
        """The client that ``[placement]`` describes; nothing connects yet.

        Raises ConfigurationError when the options cannot be used.
        """
        try:
            session = loading.load_session_from_conf_options(
                conf, conf_claims.NAME, auth=_auth_of(conf)
            )
            return cls(
                loading.load_adapter_from_conf_options(conf, conf_claims.NAME, session=session)
            )
        except (ks_exceptions.ClientException, cfg.Error, TypeError) as error:
            raise errors.ConfigurationError(option="[placement]", reason=str(error)) from error

    def candidates(self, query: str, request_id: str | None) -> dict[str, Any]:
        """The answer to ``GET /allocation_candidates`` with *query*."""
        path = f"/allocation_candidates?{query}"
        return self._read(path, CANDIDATES_VERSION, request_id)

    def allocations(self, consumer: str, request_id: str | None) -> dict[str, Any]:
        """``allocations`` of *consumer* by provider, and the generation if there are any."""
        return self._read(f"/allocations/{consumer}", READING_VERSION, request_id)

    def put(self, consumer: str, body: dict[str, Any], version: str, request_id: str | None) -> Any:
        """Try to give *consumer* the allocations of *body*; returns the response."""
        return self._call("PUT", f"/allocations/{consumer}", version, request_id, json=body)

    def delete(self, consumer: str, request_id: str | None) -> None:
        """Take from *consumer* whatever it has."""
        response = self._call("DELETE", f"/allocations/{consumer}", READING_VERSION, request_id)
        if response.status_code not in (NO_CONTENT, NOT_FOUND):
            raise Unavailable(error_text(response))

    def _read(self, path: str, version: str, request_id: str | None) -> dict[str, Any]:
        response = self._call("GET", path, version, request_id)
        if response.status_code != OK:
            raise Unavailable(error_text(response))
        try:
            body = response.json()
        except ValueError as error:
            raise Unavailable(f"the answer is not JSON: {error}") from error
        if not isinstance(body, dict):
            raise Unavailable(f"the answer is a {type(body).__name__}, not an object")
        return body

    def _call(
        self, method: str, path: str, version: str, request_id: str | None, **more: Any
    ) -> Any:
        try:
            return self._adapter.request(
                path,
                method,
                microversion=version,
                headers={"Accept": "application/json"},
                global_request_id=request_id,
                raise_exc=False,
                **more,
            )
        except ks_exceptions.ClientException as error:
            raise Unavailable(str(error)) from error


def error_text(response: Any) -> str:
    """Status and text of a *response* that is not what was hoped for."""
    return f"HTTP {response.status_code}: {response.text[:_TEXT_SHOWN]}"


def first_error(response: Any) -> tuple[str, str]:
    """Code and detail of the first error that *response* names; empty where it names none."""
    try:
        first = response.json()["errors"][0]
        return str(first.get("code", "")), str(first.get("detail", ""))
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", ""


def _auth_of(conf: cfg.ConfigOpts) -> Any:
    """The plugin of ``auth_type``; ``noauth`` is an older name of ``none``."""
    group = conf[conf_claims.NAME]
    if group.auth_type == _NOAUTH and not group.auth_section:
        return noauth.NoAuth()
    auth = loading.load_auth_from_conf_options(conf, conf_claims.NAME)
    if auth is None:
        raise errors.ConfigurationError(
            option="[placement] auth_type",
            reason="it must be set where [scheduler] claims = placement",
        )
    return auth
