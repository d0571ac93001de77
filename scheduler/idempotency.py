"""Repeated requests: one decision and one answer (reference page rpc, section 6).

A caller that hears nothing in time may send its request again, and a broker may deliver it twice.
The same request is one with the same request id, servers and arguments.  Its answer is looked for

* in the ``ReplyCache`` of the worker that answered it, by the manager, before anything is decided;
* with its claims, by the back end, which any worker finds: as text in the column ``answer`` of the
  rows (``claims.database``), or as allocations of its servers (``claims.placement``).

One delivery that a broker repeats to the same worker is dropped by ``rpc``, by its message id.
"""

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Self

from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils

from scheduler import errors, objects

LOG = logging.getLogger(__name__)

Key = tuple[str, str, int]
"""Request id, uuid of the first server, number of servers."""

_REFUSED: Final = "refused"
_FINGERPRINT_LENGTH: Final = 32
_COLUMN_LENGTH: Final = 255


def request_key(
    context: Any, spec: objects.RequestSpec, instance_uuids: list[str] | None
) -> Key | None:
    """Key that a repeated request shares with the first; None if it cannot be recognised."""
    given = getattr(context, "request_id", None)
    first = instance_uuids[0] if instance_uuids else spec.instance_uuid
    if not given or not first:
        return None
    return given, first, len(instance_uuids) if instance_uuids else spec.num_instances


def request_id(context: Any, arguments: Sequence[Any]) -> str | None:
    """The caller's request id and a fingerprint of *arguments*; None without an id.

    Of an id that is too long for the column with it, there is a fingerprint, too.
    """
    given = getattr(context, "request_id", None)
    if not given:
        return None
    text = f"{given}/{fingerprint(arguments)[:_FINGERPRINT_LENGTH]}"
    return text if len(text) <= _COLUMN_LENGTH else fingerprint([given, *arguments])


def fingerprint(arguments: Sequence[Any]) -> str:
    """A digest that is the same for equal arguments, whichever process or release sent them."""
    text = jsonutils.dumps(_without_empty(objects.to_plain(list(arguments))), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_empty(plain: Any) -> Any:
    """*plain* without null and empty values: reading a field that was not sent sets it to such."""
    if isinstance(plain, list):
        return [_without_empty(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    fields = {name: _without_empty(value) for name, value in plain.items()}
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


@dataclass(slots=True, eq=False)
class _Reply:
    key: Key
    arguments: Sequence[Any]
    future: Future[Any] = field(default_factory=Future)
    kept_until: float = float("inf")


class ReplyCache:
    """Answers in the making, and those of the last *kept_seconds*.

    Answers are kept for *kept_servers* servers in all, the latest first; 0 of either keeps none.
    Arguments are only compared where a key is found.
    """

    def __init__(
        self, kept_seconds: float, kept_servers: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._kept_seconds = kept_seconds
        self._kept_servers = kept_servers
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[Key, list[_Reply]] = {}
        self._finished: deque[_Reply] = deque()
        self._servers_finished = 0
        self.repeated = 0
        """Number of requests that were answered without a decision of their own."""

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Self:
        options = conf.scheduler
        return cls(options.answers_kept_seconds, options.answers_kept_servers)

    def reconfigure(self, conf: cfg.ConfigOpts) -> None:
        options = conf.scheduler
        with self._lock:
            self._kept_seconds = options.answers_kept_seconds
            self._kept_servers = options.answers_kept_servers
            self._expire()

    def once(
        self,
        key: Key,
        arguments: Sequence[Any],
        decide: Callable[[], Any],
        notify: Callable[[], None] = lambda: None,
    ) -> Any:
        """Return what ``decide()`` returns, or returned for the same request before: *notify* then.

        A request that arrives while the first is being decided shares its result, an error
        included.  An error is not kept for later ones: they are decided anew.  *arguments* must
        stay unchanged while the answer is kept.
        """
        reply = _Reply(key, arguments)
        earlier = self._earlier(reply)
        if earlier is not None:
            self.repeated += 1
            LOG.info("Request %s for %s came again: the answer is the same", key[0], key[1])
            answer = earlier.future.result()
            notify()
            return answer
        try:
            reply.future.set_result(decide())
        except BaseException as error:
            reply.future.set_exception(error)
            raise
        finally:
            self._finish(reply)
        return reply.future.result()

    def _earlier(self, reply: _Reply) -> _Reply | None:
        """The reply to the same request; None if *reply* is the first from now on."""
        with self._lock:
            if reply.key in self._known:
                self._expire()
            known = self._known.setdefault(reply.key, [])
            wanted = fingerprint(reply.arguments) if known else ""
            for each in known:
                if fingerprint(each.arguments) == wanted:
                    return each
            known.append(reply)
            return None

    def _finish(self, reply: _Reply) -> None:
        with self._lock:
            if reply.future.exception() is not None or not self._kept_seconds:
                self._drop(reply)
                return
            reply.kept_until = self._clock() + self._kept_seconds
            self._finished.append(reply)
            self._servers_finished += reply.key[2]
            self._expire()

    def _expire(self) -> None:
        now = self._clock()
        while self._finished:
            oldest = self._finished[0]
            if oldest.kept_until > now and self._servers_finished <= self._kept_servers:
                return
            self._finished.popleft()
            self._servers_finished -= oldest.key[2]
            self._drop(oldest)

    def _drop(self, reply: _Reply) -> None:
        known = self._known[reply.key]
        known.remove(reply)
        if not known:
            del self._known[reply.key]


def answer_to_text(selections: Sequence[objects.Selection]) -> str:
    return json.dumps(
        [[each.obj_to_primitive(), exact_numbers(each)] for each in selections],
        separators=(",", ":"),
    )


def refusal_to_text(refusal: errors.NoValidHost) -> str:
    return json.dumps({_REFUSED: refusal.kwargs.get("reason", "")})


def answer_from_text(text: str) -> list[objects.Selection]:
    """The Selections that :func:`answer_to_text` wrote, with the fractions of their limits.

    Raises NoValidHost for a text of :func:`refusal_to_text`.
    """
    content = json.loads(text)
    if isinstance(content, dict):
        raise errors.NoValidHost(reason=content[_REFUSED])
    selections = []
    for primitive, exact in content:
        selection = objects.from_primitive(primitive)
        selection.limits_exact = exact
        selections.append(selection)
    return selections


def exact_numbers(selection: objects.Selection) -> dict[str, Any]:
    """The limits of *selection* that are numbers, with fractions that its object cuts off."""
    limits = getattr(selection, "limits_exact", None) or {}
    return {name: value for name, value in limits.items() if isinstance(value, int | float)}
