"""Booting while the services are still starting, or not running at all."""

import subprocess

from tests.world.process import environment, program

BOOT = ("boot", "--flavor", "m1.tiny", "--image", "cirros", "--wait")


def test_services_that_do_not_run_are_named(deployment, transport_url, sqlite_url):
    cloud = deployment(transport_url, sqlite_url, settings={"DEFAULT": {"debug": False}})
    cloud.sync_database()
    boot = cloud.run("nova-conductor-stub", *BOOT, "--timeout", "2")
    assert boot.returncode == 1
    assert "nothing answers on topic 'conductor': is nova-conductor-stub serve running" in (
        boot.stderr
    )
    assert "Traceback" not in boot.stderr
    assert cloud.servers() == []


def test_booting_before_the_services_are_up(deployment, transport_url, sqlite_url):
    """The command is there first; it waits, and the server is built."""
    cloud = deployment(transport_url, sqlite_url)
    cloud.sync_database()
    words = ["--config-file", cloud.config_path, *BOOT, "-f", "value", "-c", "State"]
    with subprocess.Popen(
        [program("nova-conductor-stub"), *words],
        env=environment(cloud.backend),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as boot:
        try:
            assert "waiting for nova-conductor-stub" in boot.stderr.readline()
            cloud.start(1)
            printed, _told = boot.communicate(timeout=90)
        finally:
            boot.kill()
    assert (printed.strip(), boot.returncode) == ("ACTIVE", 0)
