"""Placement's REST API, as far as claims need it; no call here holds a lock.

Connections are kept and shared by all threads of a process.  Reference page conductor, section 7.
"""

import contextlib
import functools
import itertools
import math
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import requests
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1.adapter import Adapter
from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.placement.connections import Connections, adapter_from_conf, answer_until
from scheduler.conf import claims as conf_claims
from scheduler.engine.record import GIVE_BACK, LIST, LOOK, PUT, QUESTION, READ

LOG = logging.getLogger(__name__)

#: The version that candidates and claims have, and that of existing allocations.
VERSION: Final = "1.36"
READING_VERSION: Final = "1.28"

#: Tries of one claim, and reads of allocations that another worker may be making.
ATTEMPTS: Final = 10
CONCURRENT: Final = "placement.concurrent_update"
CONSUMER_CONFLICT: Final = "consumer generation conflict"
OK, NO_CONTENT, UNAUTHORIZED, NOT_FOUND, BROKEN = 200, 204, 401, 404, 500
NOT_ACCEPTABLE: Final = "HTTP 406: "
#: Limits of pauses: before a call is made again, and where a server asks for a later one.
LONGEST_PAUSE_SECONDS, LONGEST_OBEYED_SECONDS = 2.0, 5.0
#: Time of who names none.
USUAL_SECONDS: Final = 30.0
_ALWAYS: Final[dict[str, Any]] = {
    "raise_exc": False,
    "connect_retries": 0,
    "status_code_retries": 0,
}
_CLAIMING: Final = ("PUT", "POST")
_TEXT_SHOWN = 300
_IN_HEADERS: Final = re.compile("[!-~]+")
_OTHER_FORM: Final = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)

Allocations = dict[str, Any]
"""``allocations`` of an instance by provider, perhaps none, and its generation if it has any."""


class Unavailable(Exception):
    """Placement was not reached, or did not do what it should; the text says why."""


class Refused(Unavailable):
    """The service answered, but with a status of 4xx."""


class Unsure(Unavailable):
    """A claim may have been made or not; *before* is what the instance had until then."""

    def __init__(self, text: str, before: Allocations) -> None:
        super().__init__(text)
        self.before = before


@contextlib.contextmanager
def in_form(name: str) -> Iterator[None]:
    """Raise Unavailable where an answer does not have the form of *name*."""
    try:
        yield
    except _OTHER_FORM as error:
        raise Unavailable(f"the {name} have not the expected form: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Requester:
    """For whom is called: project and user as ids, the id of the request, the time it has."""

    project_id: str | None
    user_id: str | None
    request_id: str | None
    #: Deadline of all its calls, on the monotonic clock.
    ends_at: float = field(default_factory=lambda: time.monotonic() + USUAL_SECONDS, compare=False)
    #: Kind and seconds of each call that was made.
    calls: list[tuple[str, float]] = field(default_factory=list, compare=False)

    @classmethod
    def from_request(cls, context: Any, spec: Any) -> Self:
        """Who asked for *spec*: its own project and user, else those of the *context*.

        A request id that no header can carry is left out.
        """
        found = getattr(context, "global_request_id", None) or getattr(context, "request_id", None)
        found = found if _IN_HEADERS.fullmatch(str(found or "")) else None
        user_id = getattr(spec, "user_id", None) or getattr(context, "user_id", None)
        project_id = spec.project_id or getattr(context, "project_id", None)
        return cls(project_id, user_id, found)

    def within(self, seconds: float) -> Self:
        return replace(self, ends_at=time.monotonic() + seconds)


def pause_before(attempt: int) -> float:
    """Seconds at random, more before later attempts; none before the first."""
    longest = min(0.1 * 2**attempt, LONGEST_PAUSE_SECONDS)
    return random.uniform(0, longest) if attempt else 0.0


class ServiceClient:
    """One service; raises :class:`Unavailable` when it cannot be talked to.

    A call that gets no answer is made again until its requester's deadline, at most *retries*
    times; *timeout* limits each try, and *pause* sleeps.
    """

    def __init__(
        self,
        adapter: Adapter,
        timeout: float,
        pause: Callable[[float], None] = time.sleep,
        retries: float = math.inf,
    ) -> None:
        self._adapter, self._timeout, self._retries = adapter, timeout, retries
        self.pause = pause

    def read(self, path: str, version: str | None, requester: Requester) -> dict[str, Any]:
        """The JSON object that *path* gives; raises Refused where it is not to be had."""
        response = self._call("GET", path, version, requester)
        if response.status_code != OK:
            raise Refused(_error_text(response))
        try:
            body = response.json()
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"the answer is not JSON: {error}") from error
        if not isinstance(body, dict):
            raise Unavailable(f"the answer is a {type(body).__name__}, not an object")
        return body

    def _call(
        self, method: str, path: str, version: str | None, requester: Requester, **more: Any
    ) -> Any:
        """Call until there is an answer; a claim only once, if its end is not known."""
        problem = "no time was left"
        for attempt in itertools.count(1):
            left = requester.ends_at - time.monotonic()
            if left <= 0:
                break
            pause, began = pause_before(attempt - 1), time.monotonic()
            send = functools.partial(
                getattr(self._adapter, method.lower()),
                path,
                microversion=version,
                headers={"Accept": "application/json"},
                global_request_id=requester.request_id,
                timeout=min(self._timeout, left),
                **_ALWAYS,
                **more,
            )
            try:
                response = answer_until(requester.ends_at, send)
            except (ks_exceptions.ClientException, ValueError) as error:
                if attempt > self._retries or not _may_go_away(error):
                    raise Unavailable(str(error)) from error
                problem = str(error)
            else:
                if response.status_code == UNAUTHORIZED and attempt == 1:
                    continue  # with a token that is newer than what replaced the first one
                if response.status_code < BROKEN:
                    return response
                problem, asked = _error_text(response), response.headers.get("Retry-After", "")
                if asked.isdecimal():
                    pause = min(int(asked[:9]), LONGEST_OBEYED_SECONDS)  # int() has a limit
            finally:
                requester.calls.append((_kind_of(method, path), time.monotonic() - began))
            if method in _CLAIMING or attempt > self._retries:
                raise Unavailable(problem)
            self.pause(max(min(pause, requester.ends_at - time.monotonic()), 0))
        raise Unavailable(f"no answer in time: {problem}")


class PlacementClient(ServiceClient):
    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, pause: Callable[[float], None] = time.sleep) -> Self:
        """The client that ``[placement]`` describes; nothing connects yet.

        Raises ConfigurationError when the options cannot be used.
        """
        group = conf[conf_claims.NAME]
        http, connections = requests.Session(), Connections(group.max_connections)
        for scheme in ("http://", "https://"):
            http.mount(scheme, connections)
        needed_for = "[scheduler] claims = placement"
        adapter = adapter_from_conf(conf, conf_claims.NAME, needed_for, http)
        return cls(adapter, group.timeout or conf_claims.TIMEOUT_SECONDS, pause)

    def is_too_old(self, requester: Requester) -> bool:
        """True when the service answers that it does not know VERSION."""
        try:
            self.read("/", VERSION, requester)
        except Unavailable as error:
            return str(error).startswith(NOT_ACCEPTABLE)
        return False

    def candidates(self, query: str, requester: Requester) -> dict[str, Any]:
        return self.read(f"/allocation_candidates?{query}", VERSION, requester)

    @in_form("allocations")
    def allocations(self, consumer: str, requester: Requester) -> Allocations:
        body = self.read(f"/allocations/{consumer}", READING_VERSION, requester)
        return {**body, "allocations": amounts_of(body.get("allocations") or {})}

    @in_form("providers")
    def providers(self, query: str, requester: Requester) -> list[dict[str, Any]]:
        body = self.read(f"/resource_providers?{query}", VERSION, requester)
        found: list[dict[str, Any]] = body["resource_providers"]
        return found

    @in_form("parts")
    def part_of(self, provider: str, part: str, requester: Requester) -> Any:
        """One *part* of *provider*: its ``inventories``, ``usages``, ``traits``, ``aggregates``."""
        return self.read(f"/resource_providers/{provider}/{part}", VERSION, requester)[part]

    def delete(self, consumer: str, requester: Requester) -> None:
        response = self._call("DELETE", f"/allocations/{consumer}", READING_VERSION, requester)
        if response.status_code not in (NO_CONTENT, NOT_FOUND):
            raise Unavailable(_error_text(response))

    def claim(
        self,
        requester: Requester,
        consumer: str,
        request: dict[str, Any],
        keeps: Callable[[], bool],
        *,
        is_new: bool = False,
    ) -> Allocations | None:
        """Claim the allocation *request*.

        Returns what the instance had before, for :meth:`give_back`; None if the claim was refused.
        *keeps* decides whether it keeps that, as in a move; else it is of a build that did not
        come about, and replaced.  One that *is_new* has none, unless Placement says so.  Raises
        AllocationUpdateFailed when another process claims for the same instance.
        """
        has_read = not is_new
        for attempt in range(ATTEMPTS):
            self.pause(pause_before(attempt))
            before = self.allocations(consumer, requester) if has_read else {}
            kept = before["allocations"] if before.get("allocations") and keeps() else {}
            try:
                response = self._put(requester, consumer, request, before, kept)
            except Unavailable as error:
                now = None
                with contextlib.suppress(Unavailable):
                    now = self.allocations(consumer, requester)["allocations"]
                if now == amounts_of(request["allocations"]) | kept:
                    return before
                if now != before.get("allocations", {}):
                    raise Unsure(str(error), before) from error
            else:
                if response.status_code == NO_CONTENT:
                    return before
                if not _may_be_repeated(response, consumer, has_read=has_read):
                    return None
            has_read = True
        LOG.error("Failed to claim resources for %s: out of retries", consumer)
        return None

    def claim_together(
        self, requester: Requester, requests: Mapping[str, dict[str, Any]]
    ) -> bool | None:
        """Claim *requests* of consumers that have nothing, all or none.

        Returns False if nothing was claimed, and None if nobody knows.
        """
        body = {each: _claim_of(requester, requests[each], {}, {}) for each in requests}
        try:
            response = self._call("POST", "/allocations", VERSION, requester, json=body)
        except Unavailable:
            return None
        return bool(response.status_code == NO_CONTENT)

    def _put(self, requester: Requester, consumer: str, *claim: Any) -> Any:
        body = _claim_of(requester, *claim)
        return self._call("PUT", f"/allocations/{consumer}", VERSION, requester, json=body)

    def give_back(self, requester: Requester, consumer: str, before: Allocations) -> None:
        """Let the instance have what it had *before* a claim that is not to be."""
        if not before.get("allocations"):
            self.delete(consumer, requester)
            return
        for attempt in range(ATTEMPTS):
            self.pause(pause_before(attempt))
            now = self.allocations(consumer, requester)
            try:
                response = self._put(requester, consumer, before, now, {})
            except Unavailable as error:
                problem = str(error)
                continue
            if response.status_code == NO_CONTENT:
                return
            problem = _error_text(response)
        raise Unavailable(problem)


def _may_go_away(error: Exception) -> bool:
    """True when a connection failed, but for its certificates, or Keystone cannot answer now."""
    cause = isinstance(error, ks_exceptions.DiscoveryFailure) and error.__context__ or error
    if isinstance(cause, ks_exceptions.HttpError):
        return bool(cause.http_status >= BROKEN)
    is_broken = isinstance(cause, ks_exceptions.ConnectionError)
    return is_broken and not isinstance(cause, ks_exceptions.SSLError)


def _may_be_repeated(response: Any, consumer: str, *, has_read: bool) -> bool:
    """True when the claim that got *response* only met others.

    Raises AllocationUpdateFailed where these claim for *consumer* itself, since what it had before
    was read, and Refused for an answer that says nothing of what was claimed.
    """
    if response.status_code not in (400, 409):  # a provider is gone, or has too little
        raise Refused(_error_text(response))
    code, detail = _first_error(response)
    if code != CONCURRENT and "concurrently updated" not in detail:
        LOG.warning("Failed to save allocation for %s. Got %s", consumer, _error_text(response))
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
    return f"HTTP {response.status_code}: {response.content[:_TEXT_SHOWN].decode(errors='replace')}"


def _first_error(response: Any) -> tuple[str, str]:
    """Code and detail of the first error that *response* names; empty where it names none."""
    try:
        first = response.json()["errors"][0]
        return str(first.get("code", "")), str(first.get("detail", ""))
    except (*_OTHER_FORM, RecursionError):
        return "", ""


def _kind_of(method: str, path: str) -> str:
    """The kind of a call, one of ``engine.record.PLACEMENT_CALLS``."""
    if path.startswith("/allocation_candidates"):
        return QUESTION if "in_tree" in path else LIST
    if not path.startswith("/allocations"):
        return LOOK
    return {"GET": READ, "DELETE": GIVE_BACK}.get(method, PUT)


def _claim_of(
    requester: Requester, request: dict[str, Any], before: Allocations, kept: Any
) -> dict[str, Any]:
    """The body of a claim on what *request* says and what is *kept*."""
    mappings = {"mappings": request["mappings"]} if "mappings" in request else {}
    return {
        "allocations": amounts_of(request["allocations"]) | kept,
        "project_id": requester.project_id,
        "user_id": requester.user_id,
        "consumer_generation": before.get("consumer_generation"),
        **mappings,
    }


def amounts_of(allocations: Any) -> dict[str, dict[str, Any]]:
    return {uuid: {"resources": each["resources"]} for uuid, each in allocations.items()}
