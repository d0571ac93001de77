"""One write for all that were waiting when it began."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Batches(Generic[Item]):
    """Hands what callers bring to *write*, together with what others brought meanwhile.

    One write runs at a time; before it begins, *gather* lets others come.  *write* must leave its
    outcome in each item; an error of either is raised in every caller whose item was among them.
    """

    def __init__(
        self, write: Callable[[list[Item]], None], gather: Callable[[], None] = lambda: None
    ) -> None:
        self._write = write
        self._gather = gather
        self._changed = threading.Condition()
        self._waiting: list[Item] = []
        self._finished: dict[int, BaseException | None] = {}
        self._is_writing = False

    def __call__(self, item: Item) -> None:
        """Return when *item* was part of a write."""
        with self._changed:
            self._waiting.append(item)
            while id(item) not in self._finished and self._is_writing:
                self._changed.wait()
            if id(item) in self._finished:
                self._raise(self._finished.pop(id(item)))
                return
            self._is_writing = True
        self._run(item)

    def wait(self) -> None:
        """Return when the write that is under way, if there is one, has ended."""
        with self._changed:
            if self._is_writing:
                self._changed.wait()

    def _run(self, own: Item) -> None:
        error: BaseException | None = None
        batch: list[Item] = []
        try:
            try:
                self._gather()
            finally:
                with self._changed:
                    batch, self._waiting = self._waiting, []
            self._write(batch)
        except BaseException as caught:
            error = caught
            raise
        finally:
            with self._changed:
                self._finished.update((id(each), error) for each in batch if each is not own)
                self._is_writing = False
                self._changed.notify_all()

    @staticmethod
    def _raise(error: BaseException | None) -> None:
        if error is not None:
            raise error
