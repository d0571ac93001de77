"""Where every decision of a worker is written down, and who is told of it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.engine.record import SELECTED, DecisionRecord
from scheduler.explain.logline import log_decision
from scheduler.explain.memory import Memory

LOG = logging.getLogger(__name__)

DEFAULT_MEMORY_BYTES: Final = 32 * 1024 * 1024
_SEED_BITS: Final = 64

Listener = Callable[[DecisionRecord], None]
"""Told of each finished record, on the thread that answers: must be quick, and raise nothing."""


class Recorder:
    """Opens a record when a decision begins, and keeps it when the decision is over.

    ``records`` are the latest that fit into *memory_bytes*; ``listeners`` are called once with
    every finished record.  Threads do not see each other's open records.
    """

    def __init__(self, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.records = Memory(memory_bytes)
        self.listeners: list[Listener] = []
        self._seeds = random.SystemRandom()
        self._open = threading.local()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Recorder:
        """As ``[explain]`` says."""
        return cls(conf.explain.memory_bytes)

    def decision(
        self, driver: str, context: Any, spec: Any, uuids: Sequence[str] | None
    ) -> _Recording:
        """A context in which the record of one decision of *driver* is open.

        Where the caller has opened one already, it is that one, and stays open.
        """
        return _Recording(self, driver, context, spec, uuids)

    def refused(self, context: Any, error: Exception) -> None:
        """Keep a record of a request that no driver got to see because of *error*."""
        record = DecisionRecord(getattr(context, "request_id", None), (), 0, 0)
        _note_failure(record, error)
        self._finish(record)

    def _new(
        self, driver: str, context: Any, spec: Any, uuids: Sequence[str] | None
    ) -> DecisionRecord:
        named = tuple(uuids or ())
        own = getattr(spec, "instance_uuid", None)
        return DecisionRecord(
            request_id=getattr(context, "request_id", None),
            instance_uuids=named or ((own,) if own else ()),
            num_instances=len(named) or getattr(spec, "num_instances", 0),
            seed=self._seeds.getrandbits(_SEED_BITS),
            driver=driver,
            request=spec,
            wants_detail=self.records.limit_bytes > 0,
        )

    def _finish(self, record: DecisionRecord) -> None:
        self.records.append(record)
        log_decision(record)
        find_closest, record.find_closest = record.find_closest, None
        if find_closest is not None and record.outcome == SELECTED:
            try:
                find_closest()
            except Exception:
                LOG.exception("The hosts closest in %s cannot be found", record.request_id)
        for tell in self.listeners:
            try:
                tell(record)
            except Exception:
                LOG.exception("A decision could not be told of")


class _Recording:
    """The context that :meth:`Recorder.decision` returns."""

    __slots__ = ("_began", "_given", "_is_outer", "_recorder", "record")

    def __init__(self, recorder: Recorder, *given: Any) -> None:
        self._recorder = recorder
        self._given = given

    def __enter__(self) -> DecisionRecord:
        mine = self._recorder._open
        opened: DecisionRecord | None = getattr(mine, "record", None)
        self._is_outer = opened is None
        if opened is None:
            self._began = time.perf_counter()
            opened = mine.record = self._recorder._new(*self._given)
        self.record = opened
        return opened

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_outer:
            return
        record = self.record
        self._recorder._open.record = None
        record.elapsed_ms = (time.perf_counter() - self._began) * 1000
        if isinstance(error, Exception):
            _note_failure(record, error)
        self._recorder._finish(record)


def _note_failure(record: DecisionRecord, error: Exception) -> None:
    record.outcome = errors.code_of(error)
    record.failure = told(error)
    if record.outcome == errors.INTERNAL_FAULT:
        kwargs = getattr(error, "kwargs", {})
        record.fault_id = kwargs.get("fault_id") if isinstance(kwargs, dict) else None


def told(error: Exception) -> str:
    """The error, and what is behind it where the caller is not told that."""
    cause = error.__cause__
    if isinstance(cause, Exception) and getattr(error, "kwargs", {}).get("fault_id"):
        error = cause
    if isinstance(cause, errors.NoValidHost):  # the caller is told more than the text of old
        error = cause
    if not isinstance(error, errors.NovaException):
        return f"{type(error).__name__}: {error}"
    return f"{error}{error.__cause__}" if error.kwargs.get("reason") == "" else str(error)
