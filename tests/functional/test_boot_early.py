"""Booting while the services are still starting, or not running at all."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent


def command(folder, *words):
    return [str(PROGRAMS / words[0]), "--config-file", str(folder / "nova.conf"), *words[1:]]


@pytest.fixture
def folder(rabbitmq, tmp_path):
    url = rabbitmq.url(rabbitmq.create_vhost())
    (tmp_path / "nova.conf").write_text(
        f"[DEFAULT]\ntransport_url = {url}\nstate_path = {tmp_path}\n", encoding="utf-8"
    )
    subprocess.run(command(tmp_path, "nova-scheduler-manage", "db", "sync"), check=True, timeout=60)
    return tmp_path


BOOT = ("nova-conductor-stub", "boot", "--flavor", "m1.tiny", "--image", "cirros", "--wait")


def test_services_that_do_not_run_are_named(folder):
    boot = subprocess.run(
        command(folder, *BOOT, "--timeout", "2"), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert boot.returncode == 1
    assert "nothing answers on topic 'conductor': is nova-conductor-stub serve running" in (
        boot.stderr
    )
    assert "Traceback" not in boot.stderr
    listed = subprocess.run(
        command(folder, "nova-conductor-stub", "list", "-f", "json"), capture_output=True,
        text=True, timeout=60, check=True,
    )  # fmt: skip
    assert listed.stdout.strip() == "[]"


def test_booting_before_the_services_are_up(folder):
    """The command is there first; it waits, and the server is built."""
    boot = subprocess.Popen(command(folder, *BOOT, "-f", "value", "-c", "State"),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    daemons = []
    try:
        assert "waiting for nova-conductor-stub" in boot.stderr.readline()
        for words in (
            ("nova-compute-stub", "--hosts", "1"),
            ("nova-conductor-stub", "serve"),
            ("nova-scheduler",),
        ):
            with (folder / f"{words[0]}.out").open("w") as out:
                daemons.append(subprocess.Popen(command(folder, *words), stdout=out, stderr=out))
        printed, _told = boot.communicate(timeout=90)
    finally:
        boot.kill()
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(timeout=60)
    assert printed.strip() == "ACTIVE"
    assert boot.returncode == 0
