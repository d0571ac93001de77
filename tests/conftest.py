"""What all tests share: the threading back end in this process, servers, daemons."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_context import context

from scheduler import concurrency

# Before anything imports oslo.messaging, which would settle on eventlet.  Tests that need the
# other back end run it in a process of its own.
concurrency.activate(concurrency.THREADING)

_HERE = Path(__file__).parent
#: Where single files take from tens of seconds to minutes.
_LONG = tuple(_HERE / name for name in ("functional", "race", "fuzz", "soak", "unit/claims"))
#: Files and folders below ``unit`` whose tests take more than half a second, most of them.
_SLOW = tuple(
    _HERE / "unit" / name
    for name in (
        *("benchmarks", "claims/test_protocol.py", "cli/test_evaluate.py"),
        *("cli/test_workers.py", "hosts/test_interleaved_writers.py", "test_write_a_filter.py"),
        *("test_nightly.py", "test_third_party.py"),
    )
)

pytest_plugins = ["tests.servers.fixtures", "tests.world.fixtures", "tests.nova.fixtures"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests; put long files first, then the largest, else leave the order as it was.

    Workers take whole files in this order, so none is left alone with a long one at the end.
    """
    sizes = Counter(item.path for item in items)
    for item in items:
        if any(item.path.is_relative_to(each) for each in _SLOW):
            item.add_marker(pytest.mark.slow)

    def place(item: pytest.Item) -> tuple[int, int]:
        for number, folder in enumerate(_LONG):
            if item.path.is_relative_to(folder):
                return number, 0
        return len(_LONG), -sizes[item.path]

    items.sort(key=place)


@pytest.fixture(autouse=True)
def no_request_of_another_test() -> Iterator[None]:
    """Forget the request that a test leaves as the thread's current one: it shows in the log."""
    yield
    # The library offers this only to users of the package "fixtures".
    vars(context._request_store).pop("context", None)


@pytest.fixture(autouse=True)
def no_logging_of_another_test() -> Iterator[None]:
    """Put back the loggers that a test which sets up logging has changed."""
    loggers = all_loggers()
    before = [
        (each, each.level, each.propagate, each.disabled, list(each.handlers)) for each in loggers
    ]
    yield
    for each in set(all_loggers()).difference(loggers):
        each.disabled = False
        each.setLevel(logging.NOTSET)
    for each, level, propagate, disabled, handlers in before:
        each.setLevel(level)
        each.propagate, each.disabled = propagate, disabled
        for handler in set(each.handlers).difference(handlers):
            each.removeHandler(handler)
            handler.close()
        each.handlers[:] = handlers


def all_loggers() -> list[logging.Logger]:
    """The root logger and every other that exists."""
    named = logging.root.manager.loggerDict.values()
    return [logging.root, *(each for each in named if isinstance(each, logging.Logger))]
