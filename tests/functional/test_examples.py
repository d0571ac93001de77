"""The examples of the documentation, in the daemon, on a real broker."""

import json
import pathlib
import subprocess
import uuid

import pytest

from scheduler.concurrency import EVENTLET, THREADING
from scheduler.rpc.context import RequestContext
from tests.pages import WRITE_A_FILTER, commands, environment
from tests.world import fleet
from tests.world.bus import scheduler_api

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
HOSTS = ("doc1", "ops1", "dev1")


@pytest.mark.parametrize(
    ("backend", "scheduler"),
    [
        (EVENTLET, {"driver": "ip_scheduler.IPScheduler", "nova_compat_imports": True}),
        (THREADING, {"driver": "prefix_scheduler.PrefixScheduler"}),
    ],
    ids=["nova", "ours"],
)
def test_hosts_by_the_callers_address(
    deployment, transport_url, sqlite_url, backend, tmp_path, scheduler
):
    fleet.install(sqlite_url, HOSTS)
    settings = {"DEFAULT": {"service_down_time": 3600}, "scheduler": scheduler}
    cloud = deployment(transport_url, sqlite_url, backend=backend, settings=settings)
    cloud.start_scheduler(extra_environment={"PYTHONPATH": str(EXAMPLES)}).wait_ready()
    uuids = [str(uuid.uuid4()) for _ in range(2)]
    spec = fleet.a_spec(uuids[0])

    answers = {}
    for cap in (None, "newton"):
        spec.num_instances = len(uuids)
        with scheduler_api(tmp_path, transport_url, cap) as api:
            for address in ("10.1.7.42", "10.2.0.1", None):
                context = RequestContext("u", "p", remote_address=address, overwrite=False)
                answers[cap, address] = api.select_destinations(
                    context, spec, uuids, return_objects=cap is None
                )

    hosts = {"10.1.7.42": "doc1", "10.2.0.1": "ops1", None: "dev1"}
    for address, host in hosts.items():
        selections = [first for [first] in answers[None, address]]
        assert [(each.service_host, each.nodename) for each in selections] == [(host, host)] * 2
        assert [each["host"] for each in answers["newton", address]] == [host] * 2


@pytest.mark.timeout(300)
def test_the_filter_of_the_page_from_copy_to_service(transport_url, tmp_path):
    """Its commands as they stand, but for the broker's address; the daemons end with the shell."""
    address = "rabbit://guest:guest@localhost:5672/"
    script = commands(WRITE_A_FILTER, "copy", "rows", "decide", "serve")
    assert script.count(address) == 1
    ending = "trap 'kill $(jobs -p); wait' EXIT\n"
    with (tmp_path / "printed").open("w") as printed:
        done = subprocess.run(
            ["bash", "-c", ending + script.replace(address, transport_url)],
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            timeout=250,
            check=False,
        )
    text = (tmp_path / "printed").read_text()
    assert done.returncode == 0, text
    assert "6 passed" in text
    (decided,) = [json.loads(line) for line in text.splitlines() if line.startswith('{"')]
    left = [["h2", "n2"], ["h3", "n3"]]
    assert decided["filters"][-1] == {"name": "CalmHostsFilter", "passed": left}
    assert decided["selected"] == left
    assert text.count("ACTIVE") >= 4
    assert "Filter CalmHostsFilter returned" in text
