"""Work that is done beside what asked for it, by greenlets or threads."""

import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

Result = TypeVar("Result")


def in_thread(function: Callable[[], Result]) -> Future[Result]:
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except Exception as error:  # noqa: BLE001 - raised by result()
            future.set_exception(error)

    # A daemon: a server that is silent must not keep this process from ending.
    threading.Thread(target=run, daemon=True).start()
    return future


class BatchThread:
    """A thread that starts with the first thing it is given; *handle* sees to a batch at a time.

    Nobody waits for it: when *most* things wait, it takes no more.  An error of *handle* is logged.
    """

    def __init__(
        self, name: str, handle: Callable[[list[Any]], None], most: int, batch: int = 100
    ) -> None:
        self._name = name
        self._handle = handle
        self._batch = batch
        self._waiting: queue.Queue[Any] = queue.Queue(most)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def put(self, item: Any) -> bool:
        """Have *item* seen to soon; False if too much waits."""
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                with contextlib.suppress(RuntimeError):  # no more threads; the next one tries again
                    thread.start()
                    self._thread = thread
        try:
            self._waiting.put_nowait(item)
        except queue.Full:
            return False
        return True

    def close(self, seconds: float) -> int:
        """Have what waits seen to, for so long; about how many things are left over."""
        thread, self._thread = self._thread, None
        if thread is None:
            return self.waiting
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=seconds)
            thread.join(seconds)
        return self.waiting + 1 if thread.is_alive() else 0

    def _run(self) -> None:
        batch: list[Any] = []
        while None not in batch:
            batch = [self._waiting.get()]
            while len(batch) < self._batch and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            try:
                self._handle([item for item in batch if item is not None])
            except Exception:
                LOG.exception("The thread %s goes on after an error", self._name)
