"""The seam of these tests: a driver that answers what it is told to."""

import queue
from typing import Any

from scheduler import objects
from scheduler.claims.backend import Claims

LIMITS = {"memory_mb": 6144.5, "disk_gb": 100.0}


def a_selection(host: str = "cmp1", **fields: Any) -> objects.Selection:
    selection = objects.Selection(
        compute_node_uuid="c0000001-aaaa-4bbb-8ccc-000000000001",
        service_host=host,
        nodename=host,
        cell_uuid="d3b0b9ab-43c5-4d6e-8f26-5b1de4a2b8e1",
        limits=objects.SchedulerLimits.from_dict(LIMITS),
        allocation_request="null",
        allocation_request_version=None,
        availability_zone="nova",
    )
    for name, value in fields.items():
        setattr(selection, name, value)
    return selection


class RecordingDriver:
    """Puts every call into ``calls`` and gives ``answer``, which is raised if it is an error."""

    notifies_of_selections = True
    claims = Claims()

    def __init__(self) -> None:
        self.calls: queue.Queue[tuple[str, tuple[Any, ...], dict[str, Any]]] = queue.Queue()
        self.answer: Any = [[a_selection()]]
        self.host_manager = RecordingHostManager(self.calls)

    def select_destinations(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.put(("select_destinations", args, kwargs))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def next_call(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """The oldest call that was not looked at yet; waits for it."""
        return self.calls.get(timeout=60)


class RecordingHostManager:
    """Puts every call of any method into the queue."""

    def __init__(self, calls: queue.Queue[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self._calls.put((name, args, kwargs))
