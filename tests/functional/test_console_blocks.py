"""Console blocks of README and pages: each is run and prints what the page shows.

The programs of the tutorial stay for the blocks of all other pages.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import console, pages
from tests.waiting import wait_until

TUTORIAL = pages.ROOT / "docs" / "tutorial.md"
OTHERS = [
    path
    for path in (pages.ROOT / "README.md", *sorted((pages.ROOT / "docs").rglob("*.md")))
    if path != TUTORIAL and console.commands(path)
]
BROKER = "rabbit://guest:guest@localhost:5672/"
PORT = "9642"
SECONDS = 200
pytestmark = [pytest.mark.functional, pytest.mark.timeout(2 * SECONDS)]


@pytest.fixture(scope="module")
def world(rabbitmq, tmp_path_factory) -> Iterator[World]:
    """The programs that the tutorial starts, and what its commands printed."""
    world = World(tmp_path_factory.mktemp("console"), rabbitmq.url(rabbitmq.create_vhost()))
    try:
        world.printed = world.run(TUTORIAL, world.folder, {})
        yield world
    finally:
        world.end()


class World:
    """A folder to run commands in; *printed* is what those of the tutorial did."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.folder = folder
        self.printed: list[str] = []
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = str(unused.getsockname()[1])
        self._replaced = {
            BROKER: broker,
            "'enabled = true'": f"'enabled = true' 'port = {port}'",
            f":{PORT}/": f":{port}/",
        }

    def run(self, page: Path, folder: Path, environment: dict[str, str]) -> list[str]:
        """What each command of *page* prints."""
        commands = [self._here(each) for each in console.commands(page)]
        used = {**pages.environment(), "COLUMNS": "110", **environment}
        return console.run(commands, folder, used, SECONDS)

    def go_on(self, page: Path) -> list[str]:
        """The same, where the tutorial has left off."""
        home = self.folder / "tutorial"
        return self.run(page, home, {"HOME": str(home)})

    def end(self) -> None:
        """Stop every program that was started here."""
        started = [
            pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._own(pid)
        ]
        for pid in started:
            os.kill(pid, 15)
        wait_until(lambda: not any(self._own(pid) for pid in started), 60, "the programs to end")

    def _own(self, pid: int) -> bool:
        try:
            where = os.readlink(f"/proc/{pid}/cwd")
            return Path(where).is_relative_to(self.folder) and not _is_zombie(pid)
        except OSError:
            return False

    def _here(self, command: console.Command) -> console.Command:
        text = command.text
        for shown, used in self._replaced.items():
            text = text.replace(shown, used)
        return console.Command(text, command.printed)


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")


def compare(page: Path, printed: list[str]) -> None:
    for command, text in zip(console.commands(page), printed, strict=True):
        assert console.agree(command.printed, text), f"{command.text}\nprints:\n{text}"


def test_the_tutorial(world):
    compare(TUTORIAL, world.printed)


@pytest.mark.parametrize("page", OTHERS, ids=lambda path: path.name)
def test_the_page(page, world):
    compare(page, world.go_on(page))


def test_a_page_that_shows_something_else_is_found():
    assert console.agree("3 of 3 … active\n| a | 12 |", "1 of 1 are active\n| a   |  7 |\n")
    assert not console.agree("| a | 12 |", "| b |  7 |")
    assert not console.agree("one", "one\ntwo")
