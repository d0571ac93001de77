"""Placement's REST API, as far as claims need it; no call here holds a lock.

Connections are kept and shared by all threads of a process.  Reference page conductor, section 7.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import requests
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading, noauth
from keystoneauth1.adapter import Adapter
from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.conf import claims as conf_claims

LOG = logging.getLogger(__name__)

#: The version that candidates are asked for with, and the one that existing allocations are.
CANDIDATES_VERSION: Final = "1.36"
READING_VERSION: Final = "1.28"
#: From which versions on an allocation has the form of a dict, a generation, and mappings.
_DICT_FORM, _GENERATION, _MAPPINGS = (1, 12), (1, 28), (1, 34)

ATTEMPTS: Final = 4
CONCURRENT: Final = "placement.concurrent_update"
CONSUMER_CONFLICT: Final = "consumer generation conflict"
OK, NO_CONTENT, NOT_FOUND, NOT_NOW = 200, 204, 404, 503
#: Tries of one call, where the connection was closed or the server asks for a later one; and how
#: long such a server is obeyed.
TRIES: Final = 3
LONGEST_PAUSE_SECONDS: Final = 5
#: A connection without a call for so long is closed: a server may have as many processes as
#: connections, and one that closes them itself does so just when they are used.
IDLE_SECONDS: Final = 1.0
_NOAUTH = "noauth"
_TEXT_SHOWN = 300

Allocations = dict[str, Any]
"""``allocations`` of an instance by provider, perhaps none, and its generation if it has any."""


class Unavailable(Exception):
    """Placement was not reached, or did not do what it should; the text says why."""


class Unsure(Unavailable):
    """A claim may have been made or not; *before* is what the instance had until then."""

    def __init__(self, text: str, before: Allocations) -> None:
        super().__init__(text)
        self.before = before


@dataclass(frozen=True, slots=True)
class Requester:
    """For whom is claimed: project and user as ids, and the id of the request."""

    project_id: str | None
    user_id: str | None
    request_id: str | None

    @classmethod
    def from_request(cls, context: Any, spec: Any) -> Requester:
        """Who asked for *spec*: its own project and user, else those of the *context*."""
        found = getattr(context, "global_request_id", None) or getattr(context, "request_id", None)
        user_id = getattr(spec, "user_id", None) or getattr(context, "user_id", None)
        project_id = spec.project_id or getattr(context, "project_id", None)
        return cls(project_id, user_id, found)


class Connections(requests.adapters.HTTPAdapter):
    """At most so many connections to a server, which are closed when they are idle."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(pool_maxsize=most, pool_block=True)
        self._clock, self._lock = clock, threading.Lock()
        self._calls, self._used_at = 0, clock()

    def send(self, *args: Any, **more: Any) -> requests.Response:
        """See the base class."""
        with self._lock:
            if not self._calls and self._clock() - self._used_at > IDLE_SECONDS:
                self.poolmanager.clear()
            self._calls += 1
        try:
            return super().send(*args, **more)
        finally:
            with self._lock:
                self._calls, self._used_at = self._calls - 1, self._clock()


def wait_before(attempt: int) -> None:
    """Sleep at random, longer before later attempts; not at all before the first."""
    if attempt:
        time.sleep(random.uniform(0, 2 * attempt))


class PlacementClient:
    """One Placement service; raises :class:`Unavailable` when it cannot be talked to.

    *wait* is called with the number of each attempt at the same thing.
    """

    def __init__(self, adapter: Adapter, wait: Callable[[int], None] = wait_before) -> None:
        self._adapter = adapter
        self.wait = wait

    @classmethod
    def from_conf(
        cls, conf: cfg.ConfigOpts, wait: Callable[[int], None] = wait_before
    ) -> PlacementClient:
        """The client that ``[placement]`` describes; nothing connects yet.

        ``noauth`` is an older name of ``auth_type`` ``none``.  Raises ConfigurationError when the
        options cannot be used.
        """
        name, group = conf_claims.NAME, conf[conf_claims.NAME]
        try:
            is_older_name = group.auth_type == _NOAUTH and not group.auth_section
            load = loading.load_auth_from_conf_options
            auth = noauth.NoAuth() if is_older_name else load(conf, name)
            if auth is None:
                raise errors.ConfigurationError(
                    option="[placement] auth_type",
                    reason="it must be set where [scheduler] claims = placement",
                )
            connections = requests.Session()
            for scheme in ("http://", "https://"):
                connections.mount(scheme, Connections(group.max_connections))
            session = loading.load_session_from_conf_options(
                conf, name, auth=auth, session=connections
            )
            return cls(loading.load_adapter_from_conf_options(conf, name, session=session), wait)
        except (ks_exceptions.ClientException, cfg.Error, TypeError) as error:
            raise errors.ConfigurationError(option="[placement]", reason=str(error)) from error

    def candidates(self, query: str, request_id: str | None) -> dict[str, Any]:
        """The answer to ``GET /allocation_candidates`` with *query*."""
        return self._read(f"/allocation_candidates?{query}", CANDIDATES_VERSION, request_id)

    def allocations(self, consumer: str, request_id: str | None) -> Allocations:
        """Allocations of *consumer*."""
        return self._read(f"/allocations/{consumer}", READING_VERSION, request_id)

    def providers(self, query: str) -> list[dict[str, Any]]:
        """All resource providers that *query* matches."""
        body = self._read(f"/resource_providers?{query}", CANDIDATES_VERSION, None)
        found: list[dict[str, Any]] = body["resource_providers"]
        return found

    def classes_of(self, provider: str) -> set[str]:
        """The resource classes that *provider* has."""
        path = f"/resource_providers/{provider}/inventories"
        return set(self._read(path, CANDIDATES_VERSION, None)["inventories"])

    def delete(self, consumer: str, request_id: str | None) -> None:
        """Take from *consumer* whatever it has."""
        response = self._call("DELETE", f"/allocations/{consumer}", READING_VERSION, request_id)
        if response.status_code not in (NO_CONTENT, NOT_FOUND):
            raise Unavailable(_error_text(response))

    def claim(
        self,
        requester: Requester,
        consumer: str,
        request: dict[str, Any],
        version: str | None,
        keeps: Callable[[], bool],
        *,
        is_new: bool = False,
    ) -> Allocations | None:
        """Claim the allocation *request*, which was given for *version*.

        Returns what the instance had before, for :meth:`give_back`, or None if the claim was
        refused.  Where it had allocations, *keeps* is asked whether it keeps them, as in a move;
        otherwise they are those of a build that did not come about, and are replaced.  One that
        *is_new* has none, unless Placement says so.  Raises AllocationUpdateFailed when another
        process claims for the same instance.
        """
        attempt = conflicts = 0
        while attempt < ATTEMPTS:
            self.wait(conflicts)
            before = {} if is_new else self.allocations(consumer, requester.request_id)
            kept = before["allocations"] if before.get("allocations") and keeps() else {}
            try:
                response = self._put(requester, consumer, request, version, before, kept)
            except Unavailable as error:
                if self._is_made(requester, consumer, request, before, kept, error):
                    return before
                attempt += 1
                continue
            if response.status_code == NO_CONTENT:
                return before
            if not _may_be_repeated(response, consumer, has_read=not is_new):
                return None
            attempt, conflicts = attempt + (not is_new), conflicts + (not is_new)
            is_new = False
        LOG.error("Failed to claim resources for %s: out of retries", consumer)
        return None

    def _is_made(
        self,
        requester: Requester,
        consumer: str,
        request: dict[str, Any],
        before: Allocations,
        kept: Any,
        error: Unavailable,
    ) -> bool:
        """True when a claim was made whose call ended with *error*; False if nothing changed.

        Raises Unsure where neither can be said.
        """
        try:
            now = self.allocations(consumer, requester.request_id).get("allocations") or {}
        except Unavailable:
            raise Unsure(str(error), before) from error
        wanted = {**_by_provider(request["allocations"]), **_by_provider(kept)}
        if _by_provider(now) == wanted:
            return True
        if _by_provider(now) != _by_provider(before.get("allocations") or {}):
            raise Unsure(str(error), before) from error
        return False

    def give_back(self, requester: Requester, consumer: str, before: Allocations) -> None:
        """Let the instance have what it had *before* a claim that is not to be."""
        if not before.get("allocations"):
            self.delete(consumer, requester.request_id)
            return
        request = {"allocations": before["allocations"]}
        for attempt in range(ATTEMPTS):
            self.wait(attempt)
            now = self.allocations(consumer, requester.request_id)
            response = self._put(requester, consumer, request, READING_VERSION, now, {})
            if response.status_code == NO_CONTENT:
                return
        raise Unavailable(_error_text(response))

    def _put(
        self,
        requester: Requester,
        consumer: str,
        request: dict[str, Any],
        version: str | None,
        before: Allocations,
        kept: Any,
    ) -> Any:
        """Try to give *consumer* what *request* says and what is *kept*; returns the response."""
        sent = max(tuple(map(int, (version or "1.0").split("."))), _DICT_FORM)
        body = {
            "allocations": {**_by_provider(request["allocations"]), **_by_provider(kept)},
            "project_id": requester.project_id,
            "user_id": requester.user_id,
        }
        if sent >= _GENERATION:
            generation = before.get("consumer_generation")
            body["consumer_generation"] = request.get("consumer_generation", generation)
        if sent >= _MAPPINGS and "mappings" in request:
            body["mappings"] = request["mappings"]
        path, text = f"/allocations/{consumer}", ".".join(map(str, sent))
        return self._call("PUT", path, text, requester.request_id, json=body)

    def _read(self, path: str, version: str, request_id: str | None) -> dict[str, Any]:
        response = self._call("GET", path, version, request_id)
        if response.status_code != OK:
            raise Unavailable(_error_text(response))
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
        """Call until there is an answer; a PUT only once, if its end is not known."""
        for attempt in range(1, TRIES + 1):
            try:
                response = self._adapter.request(
                    path,
                    method,
                    microversion=version,
                    headers={"Accept": "application/json"},
                    global_request_id=request_id,
                    raise_exc=False,
                    **more,
                )
            except ks_exceptions.ConnectTimeout as error:
                raise Unavailable(f"Placement did not answer in time: {error}") from error
            except ks_exceptions.ClientException as error:
                is_cut = isinstance(error, ks_exceptions.ConnectFailure) and method != "PUT"
                if not is_cut or attempt == TRIES:
                    raise Unavailable(str(error)) from error
                continue
            pause = response.headers.get("Retry-After", "")
            if response.status_code != NOT_NOW or not pause.isdecimal() or attempt == TRIES:
                break
            time.sleep(min(int(pause), LONGEST_PAUSE_SECONDS))
        return response


def _may_be_repeated(response: Any, consumer: str, *, has_read: bool) -> bool:
    """True when the claim that got *response* only met others.

    Raises AllocationUpdateFailed where these claim for *consumer* itself, since what it had before
    was read.
    """
    code, detail = _first_error(response)
    if code != CONCURRENT and "concurrently updated" not in detail:
        text = _error_text(response)
        LOG.warning("Failed to save allocation for %s. Got %s", consumer, text)
        return False
    if CONSUMER_CONFLICT in detail and has_read:
        raise errors.AllocationUpdateFailed(
            consumer_uuid=consumer,
            error="another process changed the allocations of the consumer meanwhile",
        )
    LOG.debug("A provider for %s was changed by another process; again", consumer)
    return True


def _error_text(response: Any) -> str:
    """Status and text of a *response* that is not what was hoped for."""
    return f"HTTP {response.status_code}: {response.text[:_TEXT_SHOWN]}"


def _first_error(response: Any) -> tuple[str, str]:
    """Code and detail of the first error that *response* names; empty where it names none."""
    try:
        first = response.json()["errors"][0]
        return str(first.get("code", "")), str(first.get("detail", ""))
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", ""


def _by_provider(allocations: Any) -> dict[str, dict[str, Any]]:
    """Resources per provider, also of the list that releases before Queens have."""
    if isinstance(allocations, list):
        pairs = [(each["resource_provider"]["uuid"], each) for each in allocations]
    else:
        pairs = list(allocations.items())
    return {uuid: {"resources": each["resources"]} for uuid, each in pairs}
