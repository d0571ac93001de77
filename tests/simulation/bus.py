"""The bus: a queue that doubles, delays, drops and delivers again, and replies that do the same."""

import functools
from typing import Any

from tests.simulation.checks import Asked
from tests.simulation.kernel import Kernel, Process
from tests.simulation.plans import Plan


class Message:
    """One delivery of a request."""

    def __init__(self, asked: Asked, *, is_redelivered: bool = False) -> None:
        self.asked, self.is_redelivered = asked, is_redelivered


class Bus:
    """The queue of requests, which may double, delay, drop and deliver again; and replies."""

    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        self._kernel, self._plan = kernel, plan
        self._queue: list[Message] = []
        self._waiting: list[Any] = []
        self._unacknowledged: dict[Message, Process] = {}
        self.is_calm = False

    def _happens(self, probability: float) -> bool:
        return not self.is_calm and self._kernel.random.random() < probability

    def send(self, asked: Asked) -> None:
        for _time in range(1 + self._happens(self._plan.twice)):
            if self._happens(self._plan.lost):
                continue
            late = self._kernel.random.choice((0.1, 3.0)) if self._happens(self._plan.late) else 0.0
            message = Message(asked)
            self._kernel.at(self._kernel.now + late, functools.partial(self._put, message))

    def _put(self, message: Message) -> None:
        self._queue.append(message)
        self.wake()

    def wake(self) -> None:
        """Let all look who wait for a request."""
        for task in self._waiting:
            self._kernel.wake(task)
        self._waiting.clear()

    def receive(self, process: Process) -> Message:
        kernel = self._kernel
        kernel.point("receive")
        while not self._queue:
            self._waiting.append(kernel.current)
            kernel.park()
        message = self._queue.pop(int(kernel.random.random() * len(self._queue)))
        self._unacknowledged[message] = process
        return message

    def acknowledge(self, message: Message) -> None:
        self._unacknowledged.pop(message, None)

    def lost_consumer(self, process: Process) -> None:
        """Deliver again what a dead process had."""
        for message in [m for m, each in self._unacknowledged.items() if each is process]:
            del self._unacknowledged[message]
            self._queue.append(Message(message.asked, is_redelivered=True))
        self.wake()

    def reply(self, asked: Asked, answer: tuple[str, ...] | None, by: Any) -> None:
        """Send an answer, which may be lost or come late."""
        if self._happens(self._plan.lost):
            return
        late = self._kernel.random.choice((0.1, 3.0)) if self._happens(self._plan.late) else 0.0
        put = functools.partial(asked.replies.append, (answer, by))
        self._kernel.at(self._kernel.now + late, put)
