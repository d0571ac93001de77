"""What all tests share: the threading back end in this process, servers, daemons."""

import gc
import logging
import os
import pathlib
from collections import Counter
from collections.abc import Iterator

import pytest
from oslo_context import context

from scheduler import concurrency
from tests.servers.private import room

# Before anything imports oslo.messaging, which would settle on eventlet.  Tests that need the
# other back end run it in a process of its own.
concurrency.activate(concurrency.THREADING)

# PyMySQL and Keystone's clients read what the system trusts for each connection, 23 ms of processor
# time; no test connects to anybody whom the system knows.
os.environ["SSL_CERT_FILE"] = os.devnull
# The folders of tests, where each database would wait for the disk: a third of their time.
if (IN_MEMORY := room()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

pytest_plugins = ["tests.servers.fixtures", "tests.world.fixtures"]


#: By folder, the marks of its tests, so that ``-m`` finds them or leaves them out.
MARKS = {
    "functional": [pytest.mark.functional],
    # The first test of a run may have to wait until Nova is installed.
    "nova": [pytest.mark.nova, pytest.mark.timeout(900)],
    "faults": [pytest.mark.faults, pytest.mark.timeout(300)],
}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what lives in a folder of MARKS."""
    folder, *_below = item.path.relative_to(pathlib.Path(__file__).parent).parts
    for mark in MARKS.get(folder, ()):
        item.add_marker(mark)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files that need servers first, then those with slow tests, then the largest.

    Workers take whole files in this order, so none is left alone with a long one at the end.
    """
    sizes = Counter(item.path for item in items)
    marked = {(each.name, item.path) for item in items for each in item.iter_markers()}

    def place(item: pytest.Item) -> tuple[bool, bool, int]:
        first, then = ((name, item.path) in marked for name in ("functional", "slow"))
        return not first, not then, -sizes[item.path]

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Have the garbage collector leave out modules and tests, and look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


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
    new = set(all_loggers()).difference(loggers)
    before += [(each, logging.NOTSET, each.propagate, False, each.handlers) for each in new]
    for each, level, propagate, disabled, handlers in before:
        if each.level != level:  # setting it is as slow as there are loggers
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
