"""``make demo-nova``: every step comes out, its page is there, and nothing is left behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import requests

from tests.servers.fixtures import made
from tests.servers.venvs import CHECKOUT, PLACEMENT
from tests.waiting import wait_until

MARK = "NST_DEMO"
SECONDS = 600
END_SECONDS = 60


def of_the_run(mark):
    """Processes that have inherited *mark*; a new title, as some of Nova's have, hides it."""
    found = []
    for process in psutil.process_iter():
        try:
            is_ours = process.environ().get(MARK) == mark or mark in " ".join(process.cmdline())
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_it_shows_all_steps_and_ends_with_ctrl_c(nova_python, tmp_path):
    made(PLACEMENT)
    folder = Path(tempfile.mkdtemp(prefix="nst-demo-"))  # short, as it is to hold sockets
    mark = folder.name  # in the command lines of what reads nova.conf
    with (tmp_path / "printed").open("w+", encoding="utf-8") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.nova.cloud", "--keep"],
            cwd=CHECKOUT,
            env={**os.environ, MARK: mark, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

        def printed():
            return (tmp_path / "printed").read_text(encoding="utf-8")

        try:
            wait_until(
                lambda: "until Ctrl-C" in printed() or process.poll() is not None, SECONDS, printed
            )
            assert process.poll() is None, printed()
            (url,) = re.findall(r"^Status page: (\S+)", printed(), re.MULTILINE)
            assert requests.get(url, timeout=30).ok
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(END_SECONDS) == 0, printed()
            assert of_the_run(mark) == []
            folder.rmdir()  # which is empty
        finally:
            for each in of_the_run(mark):
                each.kill()
            process.wait()
