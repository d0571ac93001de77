"""The driver of the long runs, told to end."""

import subprocess
import sys

import psutil
import pytest

from tests.nightly import ROOT
from tests.waiting import wait_until

DRIVER = """import pathlib, sys, time
from tests import nightly
from tests.world import results
results.end_on_sigterm()
words = ("timeit", "-n", "1", "-r", "1", "import time; time.sleep(60)")
folder = pathlib.Path(sys.argv[1])
nightly.Night("x", nightly.Part({"waits": words}), folder, folder).run(time.monotonic() + 60)
"""


def units_of(pid):
    found = psutil.process_iter(["ppid", "cmdline"])
    return [e for e in found if e.info["ppid"] == pid and "timeit" in (e.info["cmdline"] or ())]


@pytest.mark.slow
def test_units_end_with_the_driver_of_a_shell_that_ignores_interrupts(tmp_path):
    shell = ["bash", "-c", 'trap "" INT; exec "$@"', "bash"]
    with subprocess.Popen([*shell, sys.executable, "-c", DRIVER, tmp_path], cwd=ROOT) as driver:
        (unit,) = wait_until(lambda: units_of(driver.pid), 30, "the unit to begin")
        try:
            driver.terminate()
            assert driver.wait(20) == 143
            assert not unit.is_running()
        finally:
            for each in (unit, driver):
                if psutil.pid_exists(each.pid):
                    each.kill()
