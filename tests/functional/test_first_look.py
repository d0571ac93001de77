"""What a newcomer does first: the demo, and the README's commands, copied as they stand."""

import os
import re
import subprocess
import sys

import psutil

from tests import pages
from tests.waiting import wait_until

BROKER_IN_README = "rabbit://guest:guest@localhost:5672/"


def run(words, folder, seconds, **variables):
    """Status and output of a command, which may leave programs behind."""
    with (folder / "out").open("w+") as out:
        done = subprocess.run(
            words, cwd=folder, env={**pages.environment(), **variables},
            stdout=out, stderr=subprocess.STDOUT, timeout=seconds, check=False,
        )  # fmt: skip
        out.seek(0)
        return done.returncode, out.read()


def test_the_demo_on_threads(tmp_path):
    """The test of the wheel runs it on eventlet."""
    status, printed = run(
        [sys.executable, "-m", "conductor_stub.demo"],
        tmp_path,
        200,
        OS_NOVA_DISABLE_EVENTLET_PATCHING="yes",
        PYTHONPATH=str(pages.ROOT),
    )
    assert status == 0, printed
    assert printed.count("✔") == 7
    assert printed.rpartition("Try next:")[2].count("\n  ") == 3
    assert "✘" not in printed
    assert re.search(r"RamFilter +4 +4 +0 +ram\.physical: 4", printed)
    assert "Traceback" not in printed


def test_the_readme_on_a_real_broker(transport_url, tmp_path):
    """Run as it stands, but for the broker's address; at most ten lines."""
    script = pages.commands(pages.ROOT / "README.md", "quickstart")
    assert script.count("\n") <= 11  # with one that stops it at errors
    assert script.count(BROKER_IN_README) == 1
    script = f"trap 'jobs -p > pids' EXIT\n{script.replace(BROKER_IN_README, transport_url)}"
    status, printed = run(["bash", "-c", script], tmp_path, 200)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    for pid in pids:
        os.kill(pid, 15)
    assert status == 0, printed
    assert len(pids) == 3
    assert printed.count("ACTIVE") >= 5
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), 60, "the daemons to end")
