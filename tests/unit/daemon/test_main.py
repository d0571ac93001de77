"""Number of workers that the daemon forks, and what it warns of at the start."""

import os
import subprocess
import sys

import oslo_messaging
import pytest

from scheduler import concurrency
from scheduler.daemon.service import number_of_workers
from tests.builders import a_conf

RABBIT, IN_PROCESS = "rabbit://", "fake://"


def configured(workers, claims, url):
    conf = a_conf(scheduler__workers=workers, scheduler__claims=claims)
    oslo_messaging.TransportURL.parse(conf, url)  # registers the library's options
    conf.set_override("transport_url", url)
    return conf


@pytest.mark.parametrize(
    ("workers", "claims", "url", "count"),
    [
        pytest.param(None, "database", RABBIT, os.cpu_count(), id="as many as there are CPUs"),
        pytest.param(None, "none", RABBIT, 1, id="one, where each keeps its own reservations"),
        pytest.param(None, None, RABBIT, 1, id="one, where nothing has said who keeps them"),
        pytest.param(None, "database", IN_PROCESS, 1, id="one, where no other is reached"),
        pytest.param(3, "database", RABBIT, 3, id="as told"),
        pytest.param(3, "none", RABBIT, 3, id="as told, at the operator's risk"),
        pytest.param(0, "none", RABBIT, os.cpu_count(), id="0 is one per CPU"),
    ],
)
def test_number_of_workers(workers, claims, url, count):
    assert number_of_workers(configured(workers, claims, url)) == count


@pytest.mark.parametrize(("claims", "warned"), [("none", True), ("database", False)])
def test_several_workers_without_claims_are_warned_of(caplog, claims, warned):
    number_of_workers(configured(2, claims, RABBIT))
    assert ("may promise the same host" in caplog.text) is warned


@pytest.mark.parametrize(
    ("environ", "filed", "backend"),
    [
        ({}, "threading", "threading"),
        ({}, "auto", "eventlet"),
        ({"OS_DEFAULT__CONCURRENCY_BACKEND": "threading"}, "eventlet", "threading"),
        ({"OS_DEFAULT__CONCURRENCY_BACKEND": "eventlet"}, "threading", "eventlet"),
        ({concurrency.ENVIRONMENT_VARIABLE: "no"}, "threading", "eventlet"),
    ],
)
def test_what_chooses_the_back_end(tmp_path, monkeypatch, environ, filed, backend):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "nova.conf").write_text(f"[DEFAULT]\nconcurrency_backend = {filed}\n")
    for path in (str(tmp_path / "nova.conf"), "~/nova.conf"):
        assert concurrency.choose([f"--config-file={path}"], environ) == backend


def test_streams_that_are_closed_are_given_to_dev_null(tmp_path):
    """No connection gets their numbers, and what writes to them finds something."""
    told = tmp_path / "told"
    script = (
        "import faulthandler, os, sys\n"
        "from scheduler import concurrency\n"
        "concurrency.open_standard_streams()\n"
        "faulthandler.enable()\n"
        "print('nothing', file=sys.stderr)\n"
        "names = [os.readlink(f'/proc/self/fd/{number}') for number in range(3)]\n"
        f"open({str(told)!r}, 'w').write(' '.join(names))\n"
    )
    command = f'exec "{sys.executable}" -c "$SCRIPT" <&- >&- 2>&-'
    environment = {**os.environ, "SCRIPT": script}
    assert subprocess.run(["/bin/sh", "-c", command], env=environment, check=False).returncode == 0
    assert told.read_text() == "/dev/null /dev/null /dev/null"
