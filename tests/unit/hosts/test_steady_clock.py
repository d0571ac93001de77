"""The clock of decisions, on a machine whose clock jumps."""

import logging

import pytest

from scheduler.db.database import Database
from scheduler.hosts import refresh
from scheduler.hosts.refresh import SteadyClock

BEGAN = 1_000_000.0
HOUR = 3600.0


class Machine:
    """A machine whose clock is set at will, and a database server with the right time."""

    def __init__(self, off_seconds=0.0):
        self.elapsed = 50.0
        self.off_seconds = off_seconds
        self.database_answers = True
        self.database_off_seconds = 0.0
        self.asked = 0
        self.clock = SteadyClock(self.ask, self.wall, lambda: self.elapsed)

    @property
    def right(self):
        return BEGAN + self.elapsed

    def wall(self):
        return self.right + self.off_seconds

    def ask(self):
        self.asked += 1
        return self.right + self.database_off_seconds if self.database_answers else None

    def later(self, seconds):
        """Time passes, and hosts are read."""
        self.elapsed += seconds
        self.clock.check()


@pytest.fixture
def machine():
    started = Machine()
    started.later(0)
    started.asked = 0
    return started


def test_an_answer_that_came_before_a_stop_is_not_believed(machine, monkeypatch):
    """It is older than it seems; the next one is good."""
    machine.off_seconds = 3.0

    def ask_and_stop():
        right = machine.ask()
        machine.elapsed += 20.0
        return right

    with monkeypatch.context() as stopping:
        stopping.setattr(machine.clock, "ask", ask_and_stop)
        machine.later(1)
    assert machine.clock() == machine.right
    machine.later(1)
    assert machine.clock() == machine.right
    assert machine.asked == 2


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 10.0, -10.0])
def test_a_jump_to_another_time_is_not_followed(machine, caplog, jump):
    machine.off_seconds = jump
    assert machine.clock() == machine.right, "nobody was asked yet"
    for _ in range(10):
        machine.later(1)
    assert machine.clock() == machine.right
    assert machine.asked == 1, "about each jump once a minute"
    assert [each.levelno for each in caplog.records] == [logging.WARNING]
    assert f"{jump:+.0f} s" in caplog.text
    machine.off_seconds = 0
    machine.later(1)
    assert machine.clock() == machine.right


@pytest.mark.parametrize("off", [HOUR, -HOUR, 10.0, -10.0])
def test_at_the_start_the_time_is_that_of_the_database(caplog, off):
    wrong = Machine(off)
    assert wrong.clock() == wrong.right + off, "nobody was asked yet"
    wrong.database_answers = False
    wrong.later(1)
    assert wrong.clock() == wrong.right + off
    wrong.database_answers = True
    wrong.later(1)
    assert wrong.clock() == wrong.right
    wrong.later(1)
    assert (wrong.asked, len(caplog.records)) == (2, 1)
    assert f"{off:+.0f} s" in caplog.text
    wrong.off_seconds = 0
    wrong.later(1)
    assert wrong.clock() == wrong.right
    wrong.off_seconds = off
    wrong.later(refresh.ASKED_AGAIN_SECONDS)
    assert wrong.clock() == wrong.right
    assert "set by" not in caplog.text


def test_a_jump_to_the_time_of_the_database_is_followed(machine, caplog):
    machine.database_off_seconds = machine.off_seconds = HOUR
    machine.later(1)
    assert machine.clock() == machine.wall()
    assert "set by +3600 s" in caplog.text


def test_small_steps_are_followed_without_asking(machine):
    for _ in range(5):
        machine.off_seconds += refresh.JUMP_SECONDS / 2
        machine.later(1)
        assert machine.clock() == machine.wall()
    assert machine.asked == 0


def test_while_nobody_can_say_the_time_goes_on(machine):
    machine.database_answers = False
    machine.off_seconds = HOUR
    machine.later(1)
    machine.later(1)
    assert machine.clock() == machine.right
    machine.database_answers = True
    machine.later(1)
    assert machine.clock() == machine.right


def test_the_time_of_a_database_that_is_away_is_not_known(tmp_path):
    assert Database(f"sqlite:///{tmp_path}/no/such/folder/db.sqlite").server_time() is None
