"""Workers that ask each other, and the folder that they share."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import tempfile
from collections.abc import Iterator

import pytest

from scheduler.web.server import Request, Response, Routes
from scheduler.web.workers import PREFIX, Answer, PrivateFolder, Workers, remove_leftovers

NOBODY = 2**22 + 1
"""No process has this number on Linux."""


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    # pytest's own folders have names too long for sockets.
    with tempfile.TemporaryDirectory() as made:
        yield pathlib.Path(made)


def whoami(request: Request) -> Response:
    return Response.of_text(f"{os.getpid()} {request.query.get('q')}")


#: Enough for a worker that answers on a busy machine; one test waits for it in full.
PATIENCE_SECONDS = 3.0


@pytest.fixture
def joined(folder: pathlib.Path) -> Iterator[Workers]:
    """The workers of *folder*, of whom this process is one."""
    workers, routes = Workers(folder, timeout_seconds=PATIENCE_SECONDS), Routes()
    routes.add("/whoami", whoami)
    with contextlib.ExitStack() as ending:
        workers.join(routes, ending)
        yield workers
    assert list(folder.iterdir()) == []


def mine(body: str, status: int = 200) -> Answer:
    return Answer(os.getpid(), status, f"{body}\n".encode())


def test_ask(joined: Workers) -> None:
    assert joined.pids == [os.getpid()]
    assert joined.ask("/whoami?q=1") == [mine(f"{os.getpid()} 1")]
    assert joined.ask("/else") == [mine("not found", 404)]


def test_a_worker_that_was_killed_is_forgotten(joined: Workers, folder: pathlib.Path) -> None:
    left = folder / f"{NOBODY}.socket"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    assert joined.pids == [os.getpid(), NOBODY]
    assert [each.pid for each in joined.ask("/whoami")] == [os.getpid()]
    assert not left.exists()


def test_a_worker_that_does_not_answer(joined: Workers, folder: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(folder / f"{NOBODY}.socket"))
        silent.listen()
        answers = joined.ask("/whoami")
    assert answers == [mine(f"{os.getpid()} None"), Answer(NOBODY, None)]
    (folder / f"{NOBODY}.socket").unlink()


def test_without_a_folder_there_is_nobody() -> None:
    workers = Workers(None)
    with contextlib.ExitStack() as ending:
        workers.join(Routes(), ending)
        assert (workers.pids, workers.ask("/whoami"), workers.ask_one(1, "/")) == ([], [], None)


# --- the folder --------------------------------------------------------------------------


def test_a_folder_is_private_and_goes_in_the_end(tmp_path: pathlib.Path) -> None:
    folder = PrivateFolder(tmp_path)
    assert [folder.path] == list(tmp_path.iterdir())
    assert folder.path.name.startswith(f"{PREFIX}{os.getpid()}-")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "1.socket").touch()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_stays_until_the_last_process_of_its_daemon_is_gone(
    tmp_path: pathlib.Path,
) -> None:
    end_it, ended = os.pipe()
    folder = PrivateFolder(tmp_path)
    (folder.path / "1.socket").touch()
    child = os.fork()
    if child == 0:  # a worker, which ends without a word, and its lock with it
        os.close(ended)
        os.read(end_it, 1)
        os._exit(0)
    another = PrivateFolder(tmp_path)
    assert folder.path.is_dir()
    os.close(folder._lock)  # as the kernel does when the master is killed
    remove_leftovers(tmp_path)
    assert folder.path.is_dir()
    os.close(ended)
    os.waitpid(child, 0)
    os.close(end_it)
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [another.path]
    another.close()


def test_folders_that_are_not_ours_stay(tmp_path: pathlib.Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    kept = [tmp_path / "other-1-x", tmp_path / f"{PREFIX}file", tmp_path / f"{PREFIX}link"]
    kept += [tmp_path / f"{PREFIX}backup", tmp_path / f"{PREFIX}2026-of-an-operator"]
    for each in (kept[0], *kept[3:]):
        each.mkdir()
    kept[1].touch()
    kept[2].symlink_to(outside)
    remove_leftovers(tmp_path)
    assert all(os.path.lexists(each) for each in (*kept, outside))
