"""The systemd units: systemd accepts them, they confine, and they start programs that exist."""

import configparser
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_messaging.rpc.client import _client_opts as client_options
from oslo_service import _options as service_options

from tests.house.tree import ROOT
from tests.servers import programs
from tests.servers.fixtures import require

UNITS = sorted((ROOT / "systemd").glob("*.service"))
WORST_EXPOSURE = 20
"""In systemd's tenths: 0 is sealed, 100 unconfined."""


def analyze(*arguments):
    """Run systemd-analyze; returns its complaints, fails when it ends with an error."""
    require((programs.SYSTEMD_ANALYZE,))
    done = subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def settings(unit):
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(unit, encoding="utf-8")
    return parser["Service"]


@pytest.fixture(params=UNITS, ids=lambda unit: unit.name)
def unit(request):
    return Path(request.param)


def test_there_is_a_unit_per_program_that_serves():
    assert [path.stem for path in UNITS] == [
        "nova-compute-stub",
        "nova-conductor-stub",
        "nova-scheduler",
    ]


def test_systemd_accepts_the_unit(unit, tmp_path):
    # The programs are looked up by systemd, so name them where this environment has them.
    here = str(Path(sys.executable).parent)
    copy = tmp_path / unit.name
    text = unit.read_text(encoding="utf-8")
    copy.write_text(text.replace("/usr/bin/nova-", f"{here}/nova-"), encoding="utf-8")
    assert "ExecStart=" + here in copy.read_text(encoding="utf-8")
    assert unit.name not in analyze("verify", "--man=no", str(copy))


def test_the_unit_confines_its_program(unit):
    analyze("security", "--offline=true", f"--threshold={WORST_EXPOSURE}", str(unit))


def test_the_unit_starts_its_own_program(unit):
    command = settings(unit)["ExecStart"].split()
    assert command[:2] == [f"/usr/bin/{unit.stem}", "--config-file=/etc/nova/nova.conf"]


def test_a_unit_that_hangs_is_ended_and_started_again(unit):
    service = settings(unit)
    assert int(service["WatchdogSec"]) >= 2 * rpc_response_timeout()
    assert service["Restart"] == "on-failure"


def rpc_response_timeout():
    """Seconds after which callers give up, which no request may be killed before."""
    (option,) = (each for each in client_options if each.name == "rpc_response_timeout")
    return int(option.default)


def test_the_unit_waits_longer_than_the_daemon_needs_to_stop(unit):
    assert settings(unit)["Type"] == "notify"
    (graceful,) = (
        option.default
        for option in service_options.service_opts
        if option.name == "graceful_shutdown_timeout"
    )
    assert int(settings(unit)["TimeoutStopSec"]) > graceful
