"""What a newcomer does first: the demo, and the README's commands, copied as they stand."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.waiting import wait_until

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(sys.executable).parent
BROKER_IN_README = "rabbit://guest:guest@localhost:5672/"


@pytest.mark.parametrize("disable_eventlet", ["no", "yes"])
def test_the_demo(disable_eventlet):
    environment = {**os.environ, "OS_NOVA_DISABLE_EVENTLET_PATCHING": disable_eventlet}
    demo = subprocess.run(
        [sys.executable, "-m", "conductor_stub.demo"],
        env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
    )  # fmt: skip
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stdout.count("✔") == 7
    assert "✘" not in demo.stdout
    assert re.search(r"RamFilter +4 +4 +0 +ram\.physical: 4", demo.stdout)
    assert "Traceback" not in demo.stdout + demo.stderr


def quick_start():
    """The shell commands of the README's block on one's own RabbitMQ."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- tested: quickstart -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert block, "the README has no tested quick start"
    return block.group(1)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.functional
def test_the_readme_on_a_real_broker(rabbitmq, tmp_path):
    """Run as it stands, but for the broker's address; at most ten lines."""
    commands = quick_start()
    assert commands.count("\n") <= 10
    assert commands.count(BROKER_IN_README) == 1
    script = commands.replace(BROKER_IN_README, rabbitmq.url(rabbitmq.create_vhost()))
    script = f"set -e\njobs_end() {{ jobs -p > pids; }}\ntrap jobs_end EXIT\n{script}"
    environment = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    with (tmp_path / "out").open("w") as out:
        run = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path, env=environment, stdout=out, stderr=subprocess.STDOUT, timeout=90,
            check=False,
        )  # fmt: skip
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    for pid in pids:
        os.kill(pid, 15)
    printed = (tmp_path / "out").read_text()
    assert run.returncode == 0, printed
    assert len(pids) == 3
    assert printed.count("ACTIVE") >= 5
    wait_until(lambda: not any(alive(pid) for pid in pids), 60, "the daemons to end")
