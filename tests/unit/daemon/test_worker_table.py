"""Workers see each other's signs, whoever they are and however they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable

from scheduler.daemon.worker_table import Board, Sign, Stage

FULL = Sign(Stage.SERVING, 100.0, 98.0, 12, 345, 4711)


def in_a_worker(work: Callable[[], None]) -> int | None:
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join(60)
    return worker.exitcode


def test_a_sign_is_read_as_it_was_given() -> None:
    board = Board(1)
    board.join()
    for sign in (FULL, Sign(Stage.STARTING, 1.0)):
        board.give(sign)
        assert board.signs() == [sign]


def test_each_process_has_a_place_of_its_own() -> None:
    board = Board(2, clock=lambda: 105.0)

    def join_and_give() -> None:
        board.join()
        board.give(FULL)

    board.join()
    board.give(Sign(Stage.STARTING, 104.0))
    assert in_a_worker(join_and_give) == 0

    assert board.signs() == [Sign(Stage.STARTING, 104.0), FULL]
    assert not board.is_complete()
    assert board.stale(5.0) == []
    assert board.stale(4.0) == [FULL]


def test_the_place_of_a_killed_worker_is_taken_by_the_next() -> None:
    board = Board(2)
    board.join()

    def join_and_die() -> None:
        board.join()
        board.give(FULL)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_worker(join_and_die) == -signal.SIGKILL
    assert in_a_worker(join_and_die) == -signal.SIGKILL
    assert board.signs()[1] == FULL


def test_what_a_killed_worker_had_in_hand_is_known_to_the_next() -> None:
    board = Board(2)
    assert board.join() == 0

    def join_and_die() -> None:
        assert board.join() == 0
        board.show_in_hand(7)
        board.show_in_hand(3)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_worker(join_and_die) == -signal.SIGKILL
    assert in_a_worker(lambda: os._exit(board.join())) == 3
    assert in_a_worker(lambda: os._exit(board.join())) == 0  # told once


def test_one_worker_too_many_disturbs_nobody() -> None:
    board = Board(1)
    board.join()
    board.give(FULL)

    def join_and_give() -> None:
        board.join()
        board.give(Sign(Stage.STARTING))

    assert in_a_worker(join_and_give) == 0
    assert board.signs() == [FULL]


def test_a_worker_that_never_was_is_missed() -> None:
    board = Board(2, clock=lambda: 100.0)
    board.join()
    board.give(FULL)
    assert not board.is_complete()
    assert board.stale(1e9) == [Sign()]
