"""Allocations of one instance: claimed, with the races of that, and given back.

Reference page conductor, section 7.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.placement.client import (
    NO_CONTENT,
    READING_VERSION,
    PlacementClient,
    Unavailable,
    error_text,
    first_error,
)

LOG = logging.getLogger(__name__)

ATTEMPTS: Final = 4
CONCURRENT: Final = "placement.concurrent_update"
CONSUMER_CONFLICT: Final = "consumer generation conflict"

#: From which versions on an allocation has the form of a dict, a generation, and mappings.
_DICT_FORM, _GENERATION, _MAPPINGS = (1, 12), (1, 28), (1, 34)


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


class Unsure(Unavailable):
    """A claim may have been made or not; *before* is what the instance had until then."""

    def __init__(self, text: str, before: dict[str, Any]) -> None:
        super().__init__(text)
        self.before = before


def wait_before(attempt: int) -> None:
    """Sleep at random, longer before later attempts; not at all before the first."""
    if attempt:
        time.sleep(random.uniform(0, 2 * attempt))


class Allocations:
    """Claims and gives back allocations through *client*; raises its Unavailable."""

    def __init__(self, client: PlacementClient, wait: Callable[[int], None] = wait_before) -> None:
        self._client = client
        self.wait = wait

    def existing(self, consumer: str, requester: Requester) -> dict[str, Any]:
        """Allocations of the instance: providers and resources in ``allocations``, perhaps none."""
        return self._client.allocations(consumer, requester.request_id)

    def claim(
        self,
        requester: Requester,
        consumer: str,
        request: dict[str, Any],
        version: str | None,
        keeps: Callable[[dict[str, Any]], bool],
    ) -> dict[str, Any] | None:
        """Claim the allocation *request*, which was given for *version*.

        Returns what the instance had before, for :meth:`give_back`, or None if the claim was
        refused.  Where it had allocations, *keeps* is asked whether it keeps them, as in a move;
        otherwise they are those of a build that did not come about, and are replaced.  Raises
        AllocationUpdateFailed when another process claims for the same instance.
        """
        for attempt in range(ATTEMPTS):
            self.wait(attempt)
            before = self.existing(consumer, requester)
            is_move = bool(before.get("allocations")) and keeps(before)
            body, sent = _body(requester, request, version, before, keeps=is_move)
            try:
                response = self._client.put(consumer, body, sent, requester.request_id)
            except Unavailable as error:
                raise Unsure(str(error), before) from error
            if response.status_code == NO_CONTENT:
                return before
            code, detail = first_error(response)
            if code != CONCURRENT and "concurrently updated" not in detail:
                LOG.warning(
                    "Failed to save allocation for %s. Got %s", consumer, error_text(response)
                )
                return None
            if CONSUMER_CONFLICT in detail:
                raise errors.AllocationUpdateFailed(
                    consumer_uuid=consumer,
                    error="another process changed the allocations of the consumer meanwhile",
                )
            LOG.debug("A provider for %s was changed by another process; again", consumer)
        LOG.error("Failed to claim resources for %s: out of retries", consumer)
        return None

    def give_back(self, requester: Requester, consumer: str, before: dict[str, Any]) -> None:
        """Let the instance have what it had *before* a claim that is not to be."""
        if not before.get("allocations"):
            self._client.delete(consumer, requester.request_id)
            return
        for attempt in range(ATTEMPTS):
            self.wait(attempt)
            now = self.existing(consumer, requester)
            request = {"allocations": before["allocations"]}
            body, version = _body(requester, request, READING_VERSION, now, keeps=False)
            response = self._client.put(consumer, body, version, requester.request_id)
            if response.status_code == NO_CONTENT:
                return
        raise Unavailable(error_text(response))


def _body(
    requester: Requester,
    request: dict[str, Any],
    version: str | None,
    before: dict[str, Any],
    *,
    keeps: bool,
) -> tuple[dict[str, Any], str]:
    """The body to PUT, and the version to send it with."""
    sent = max(_numbers(version), _DICT_FORM)
    wanted = _by_provider(request["allocations"])
    if keeps:
        wanted = {**wanted, **_by_provider(before["allocations"])}
    body = {
        "allocations": wanted,
        "project_id": requester.project_id,
        "user_id": requester.user_id,
    }
    if sent >= _GENERATION:
        generation = before.get("consumer_generation")
        body["consumer_generation"] = request.get("consumer_generation", generation)
    if sent >= _MAPPINGS and "mappings" in request:
        body["mappings"] = request["mappings"]
    return body, f"{sent[0]}.{sent[1]}"


def _numbers(version: str | None) -> tuple[int, int]:
    major, _dot, minor = (version or "1.0").partition(".")
    return int(major), int(minor or 0)


def _by_provider(allocations: Any) -> dict[str, dict[str, Any]]:
    """Resources per provider, also of the list that releases before Queens have."""
    if isinstance(allocations, list):
        return {
            each["resource_provider"]["uuid"]: {"resources": each["resources"]}
            for each in allocations
        }
    return {uuid: {"resources": each["resources"]} for uuid, each in allocations.items()}
