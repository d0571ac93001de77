"""The folder of a daemon that lives, and that of one that was killed."""

from __future__ import annotations

import os
import pathlib

from scheduler.web.folder import PREFIX, PrivateFolder, remove_leftovers


def test_it_is_private_and_goes_in_the_end(tmp_path: pathlib.Path) -> None:
    folder = PrivateFolder(tmp_path)
    assert [folder.path] == list(tmp_path.iterdir())
    assert folder.path.name.startswith(f"{PREFIX}{os.getpid()}-")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "1.socket").touch()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_that_of_a_daemon_that_lives_stays(tmp_path: pathlib.Path) -> None:
    mine = PrivateFolder(tmp_path)
    another = PrivateFolder(tmp_path)
    assert mine.path.is_dir()
    assert another.path.is_dir()
    another.close()
    mine.close()


def test_that_of_a_daemon_that_was_killed_goes(tmp_path: pathlib.Path) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # it ends without a word, and its lock with it
        folder = PrivateFolder(tmp_path)
        (folder.path / "1.socket").touch()
        os.write(write, b"1")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == b"1"
    os.close(read)
    os.close(write)
    (left,) = tmp_path.iterdir()
    folder = PrivateFolder(tmp_path)
    assert not left.exists()
    folder.close()


def test_that_of_a_worker_that_outlives_its_master_stays(tmp_path: pathlib.Path) -> None:
    end_it, ended = os.pipe()
    folder = PrivateFolder(tmp_path)
    child = os.fork()
    if child == 0:
        os.close(ended)
        os.read(end_it, 1)
        os._exit(0)
    os.close(folder._lock)  # as the kernel does when the master is killed
    remove_leftovers(tmp_path)
    assert folder.path.is_dir()
    os.close(ended)
    os.waitpid(child, 0)
    os.close(end_it)
    remove_leftovers(tmp_path)
    assert not folder.path.exists()


def test_what_is_not_ours_stays(tmp_path: pathlib.Path) -> None:
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
