"""Console blocks of README and pages: each is run and prints what the page shows.

The programs of the tutorial stay for the blocks of all other pages.
"""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from scheduler.concurrency import THREADING
from tests import console, pages
from tests.waiting import wait_until
from tests.world import process

TUTORIAL = pages.ROOT / "docs" / "tutorial.md"
OTHERS = [
    path
    for path in (pages.ROOT / "README.md", *sorted((pages.ROOT / "docs").rglob("*.md")))
    if path != TUTORIAL and console.commands(path)
]
BROKER = "rabbit://guest:guest@localhost:5672/"
PORT = "9642"
#: The tutorial's scheduler records, for the pages on that.
RECORDINGS = "/var/lib/nova-scheduler/recording"
SECONDS = 200
MANAGE = "nova-scheduler-manage"
#: Has the command of operators forked by the tests: to import it takes a second.
FORKED = console.Command(
    f"""{MANAGE}() {{
    local asked status
    asked=$(mktemp -d -p "$FORKING") && mkfifo "$asked/status"
    env -0 > "$asked/environment"
    printf '%s\\0' "$PWD" "$@" > "$asked/words"
    echo "$asked" > "$FORKING/asked"
    read -r status < "$asked/status"
    cat "$asked/out"
    cat "$asked/err" >&2
    return "$status"
}}""",
    "",
)
pytestmark = [pytest.mark.functional, pytest.mark.timeout(2 * SECONDS)]


@pytest.fixture(scope="module")
def world(rabbitmq, tmp_path_factory):
    """The programs that the tutorial starts, and what its commands printed."""
    world = World(tmp_path_factory.mktemp("console"), rabbitmq.url(rabbitmq.create_vhost()))
    try:
        world.printed = world.run(TUTORIAL, world.folder, {})
        yield world
    finally:
        world.end()


class World:
    """A folder to run commands in; *printed* is what those of the tutorial did."""

    def __init__(self, folder, broker):
        self.folder = folder
        self._forking = folder / "forking"
        self._forking.mkdir()
        os.mkfifo(self._forking / "asked")
        threading.Thread(target=self._fork, daemon=True).start()
        self.printed = []
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = str(unused.getsockname()[1])
        recordings = folder / "recording"
        recordings.mkdir()
        recording = f"'[recording]' 'enabled = true' 'directory = {recordings}' "
        self._replaced = {
            BROKER: broker,
            "'enabled = true'": f"'enabled = true' 'port = {port}'",
            f":{PORT}/": f":{port}/",
            "'[metrics_endpoint]'": f"{recording}'[metrics_endpoint]'",
            RECORDINGS: str(recordings),
        }

    def run(self, page, folder, environment):
        """What each command of *page* prints."""
        commands = [self._here(each) for each in console.commands(page)]
        used = {**pages.environment(), "COLUMNS": "110", "FORKING": str(self._forking)}
        return console.run([FORKED, *commands], folder, {**used, **environment}, SECONDS)[1:]

    def _fork(self):
        """Run the commands that shells ask for, one after the other."""
        # Open for writing, too, or it would end with the first shell.
        with open(os.open(self._forking / "asked", os.O_RDWR), encoding="utf-8") as asked:
            for line in asked:
                folder = Path(line.strip())
                texts = [(folder / name).read_text("utf-8") for name in ("words", "environment")]
                (where, *words), variables = (text.split("\0")[:-1] for text in texts)
                started = process.start(
                    [process.program(MANAGE), *words],
                    Path(where),
                    process.environment(THREADING) | dict(each.split("=", 1) for each in variables),
                    (folder / "out", folder / "err"),
                )
                (folder / "status").write_text(f"{started.wait(SECONDS)}\n", encoding="utf-8")

    def go_on(self, page):
        """The same, where the tutorial has left off."""
        home = self.folder / "tutorial"
        return self.run(page, home, {"HOME": str(home)})

    def end(self):
        """Stop every program that was started here."""
        started = [
            pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._own(pid)
        ]
        for pid in started:
            os.kill(pid, 15)
        wait_until(lambda: not any(self._own(pid) for pid in started), 60, "the programs to end")

    def _own(self, pid):
        try:
            where = os.readlink(f"/proc/{pid}/cwd")
            is_zombie = ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            return Path(where).is_relative_to(self.folder) and not is_zombie
        except OSError:
            return False

    def _here(self, command):
        text = command.text
        for shown, used in self._replaced.items():
            text = text.replace(shown, used)
        return console.Command(text, command.printed)


def compare(page, printed):
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
