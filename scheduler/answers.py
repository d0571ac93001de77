"""Requests that arrive twice: one decision, one answer (reference page rpc, section 6).

A caller that hears nothing in time may send its request again.  Whoever asks again with the same
request id for the same servers, and with the same arguments, gets what was decided the first time.
This memory is one worker's own.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils

from scheduler import objects

LOG = logging.getLogger(__name__)

Key = tuple[str, str, int]
"""Request id, the first server's uuid, how many servers."""


class _Answer:
    """What became, or is becoming, of one request."""

    __slots__ = ("arguments", "awaited", "count", "error", "is_final", "kept_until", "result")

    def __init__(self, arguments: Sequence[Any], count: int) -> None:
        self.arguments = arguments
        self.count = count
        self.is_final = False
        #: Made by the first who has to wait, as hardly anybody does.
        self.awaited: threading.Event | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.kept_until = float("inf")

    def get(self) -> Any:
        """Wait for the decision, then return or raise it."""
        if self.awaited is not None:
            self.awaited.wait()
        if self.error is not None:
            raise self.error
        return self.result


class Answers:
    """Answers being worked out, and those given in the last *kept_seconds*.

    Those given are kept for *kept_servers* servers in all, the latest first; 0 of either keeps
    none.  Only a key that is found costs a comparison of the arguments.
    """

    def __init__(
        self,
        kept_seconds: float,
        kept_servers: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept_seconds = kept_seconds
        self._kept_servers = kept_servers
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[Key, list[_Answer]] = {}
        self._given: OrderedDict[int, tuple[Key, _Answer]] = OrderedDict()
        self._servers_given = 0
        self.repeated = 0
        """How many requests were answered without a decision of their own."""

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Answers:
        """As ``[scheduler]`` says."""
        options = conf.scheduler
        return cls(options.answers_kept_seconds, options.answers_kept_servers)

    def keep(self, kept_seconds: float, kept_servers: int) -> None:
        """From now on keep answers so long, and so many."""
        with self._lock:
            self._kept_seconds, self._kept_servers = kept_seconds, kept_servers
            self._forget_old()

    def once(self, key: Key, arguments: Sequence[Any], decide: Callable[[], Any]) -> Any:
        """What ``decide()`` returns, or returned for an earlier request with these arguments.

        A request that arrives while the first is being decided shares its result, an error
        included.  An error is not kept for requests that come later: they are decided anew.
        *arguments* must stay as they are while the answer is kept.
        """
        answer = _Answer(arguments, key[2])
        earlier = self._known_or_begun(key, answer)
        if earlier is not None:
            self.repeated += 1
            LOG.info("Request %s for %s came again: the answer is the same", key[0], key[1])
            return earlier.get()
        try:
            answer.result = decide()
        except BaseException as error:
            answer.error = error
            raise
        finally:
            self._settle(key, answer)
        return answer.result

    def _known_or_begun(self, key: Key, answer: _Answer) -> _Answer | None:
        """The earlier answer to the same request; None if *answer* now is the first."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                self._known[key] = [answer]
                return None
            self._forget_old()
            known = self._known.setdefault(key, [])
            # Comparing takes time, but a key that is found is rare.
            wanted = fingerprint_of(answer.arguments)
            for each in known:
                if fingerprint_of(each.arguments) == wanted:
                    if not each.is_final and each.awaited is None:
                        each.awaited = threading.Event()
                    return each
            known.append(answer)
            return None

    def _settle(self, key: Key, answer: _Answer) -> None:
        """Keep *answer* for a while, or drop it when it is an error."""
        with self._lock:
            answer.is_final = True
            if answer.awaited is not None:
                answer.awaited.set()
            if answer.error is not None or not self._kept_seconds:
                self._drop(key, answer)
                return
            answer.kept_until = self._clock() + self._kept_seconds
            self._given[id(answer)] = (key, answer)
            self._servers_given += answer.count
            self._forget_old()

    def _forget_old(self) -> None:
        now = self._clock()
        while self._given:
            key, oldest = next(iter(self._given.values()))
            if oldest.kept_until > now and self._servers_given <= self._kept_servers:
                return
            self._given.popitem(last=False)
            self._servers_given -= oldest.count
            self._drop(key, oldest)

    def _drop(self, key: Key, answer: _Answer) -> None:
        known = self._known[key]
        known.remove(answer)
        if not known:
            del self._known[key]


def key_of(context: Any, spec: objects.RequestSpec, instance_uuids: list[str] | None) -> Key | None:
    """What a repeated request has in common with the first; None if it cannot be known again."""
    request_id = getattr(context, "request_id", None)
    first = instance_uuids[0] if instance_uuids else spec.instance_uuid
    if not request_id or not first:
        return None
    return request_id, first, len(instance_uuids) if instance_uuids else spec.num_instances


def fingerprint_of(arguments: Sequence[Any]) -> str:
    """The same text for arguments that say the same, whichever process or release wrote them."""
    text = jsonutils.dumps(_said(objects.to_plain(list(arguments))), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _said(plain: Any) -> Any:
    """*plain* without what is null or empty: a field that was not sent is set to that by a look."""
    if isinstance(plain, list):
        return [_said(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    told = {name: _said(value) for name, value in plain.items()}
    return {name: value for name, value in told.items() if value not in (None, [], {})}
