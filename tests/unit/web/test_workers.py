"""Workers that ask each other."""

import contextlib
import os
import pathlib
import socket
import tempfile

import pytest

from scheduler.web.server import Response, Routes
from scheduler.web.workers import Answer, Workers

NOBODY = 2**22 + 1
"""No process has this number on Linux."""


@pytest.fixture
def folder():
    # pytest's own folders have names too long for sockets.
    with tempfile.TemporaryDirectory() as made:
        yield pathlib.Path(made)


def whoami(request):
    return Response.of_text(f"{os.getpid()} {request.query.get('q')}")


#: Enough for a worker that answers on a busy machine; one test waits for it in full.
PATIENCE_SECONDS = 3.0


@pytest.fixture
def joined(folder):
    """The workers of *folder*, of whom this process is one."""
    workers, routes = Workers(folder, timeout_seconds=PATIENCE_SECONDS), Routes()
    routes.add("/whoami", whoami)
    with contextlib.ExitStack() as ending:
        workers.join(routes, ending)
        yield workers
    assert list(folder.iterdir()) == []


def mine(body, status=200):
    return Answer(os.getpid(), status, f"{body}\n".encode())


def test_a_worker_that_was_killed_is_forgotten(joined, folder):
    left = folder / f"{NOBODY}.socket"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    assert joined.pids == [os.getpid(), NOBODY]
    assert [each.pid for each in joined.ask("/whoami")] == [os.getpid()]
    assert not left.exists()


def test_a_worker_that_does_not_answer(joined, folder):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(folder / f"{NOBODY}.socket"))
        silent.listen()
        answers = joined.ask("/whoami")
    assert answers == [mine(f"{os.getpid()} None"), Answer(NOBODY, None)]
    (folder / f"{NOBODY}.socket").unlink()


def test_without_a_folder_there_is_nobody():
    workers = Workers(None)
    with contextlib.ExitStack() as ending:
        workers.join(Routes(), ending)
        assert (workers.pids, workers.ask("/whoami"), workers.ask_one(1, "/")) == ([], [], None)
