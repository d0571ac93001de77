"""The examples of the documentation, in the daemon, on a real broker."""

from __future__ import annotations

import json
import pathlib
import subprocess
import uuid
from typing import Any

import pytest

from scheduler.concurrency import EVENTLET, THREADING
from scheduler.rpc.context import RequestContext
from tests.pages import WRITE_A_FILTER, commands, environment
from tests.world import fleet
from tests.world.bus import scheduler_api
from tests.world.fixtures import MakeDeployment
from tests.world.process import Daemon

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"
HOSTS = ("doc1", "ops1", "dev1")


def a_scheduler(
    deployment: MakeDeployment, url: str, database_url: str, backend: str, **groups: dict[str, Any]
) -> Daemon:
    """A scheduler of these hosts that finds the examples."""
    fleet.install(database_url, HOSTS)
    # Nothing sends heartbeats for the hosts.
    settings = {"DEFAULT": {"host": "sched1", "service_down_time": 3600}, **groups}
    made = deployment(url, database_url, backend=backend, settings=settings)
    return made.start_scheduler(extra_environment={"PYTHONPATH": str(EXAMPLES)})


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
    options = {"scheduler": scheduler}
    a_scheduler(deployment, transport_url, sqlite_url, backend, **options).wait_ready()
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


def test_the_filter_that_tells_everything(deployment, transport_url, sqlite_url, tmp_path):
    scheduler = a_scheduler(
        deployment,
        transport_url,
        sqlite_url,
        EVENTLET,
        scheduler={"nova_compat_imports": True},
        filter_scheduler={
            "available_filters": [
                "nova.scheduler.filters.all_filters",
                "dump_filter.DumpFilter",
            ],
            "enabled_filters": "ComputeFilter, DumpFilter",
        },
    ).wait_ready()
    own = str(uuid.uuid4())
    with scheduler_api(tmp_path, transport_url) as api:
        context = RequestContext("u", "p", overwrite=False)
        [[selection]] = api.select_destinations(
            context, fleet.a_spec(own), [own], return_objects=True
        )

    assert selection.service_host in HOSTS
    scheduler.wait_log(f"request: instance_uuid = {own}")
    scheduler.wait_log(f"host ops1: free_ram_mb = {fleet.MEMORY_MB}")
    scheduler.wait_log("Filter DumpFilter returned 3 host(s)")


def test_without_the_option_there_is_no_nova(deployment, transport_url, sqlite_url):
    options = {"scheduler": {"driver": "ip_scheduler.IPScheduler"}}
    refused = a_scheduler(deployment, transport_url, sqlite_url, EVENTLET, **options)

    assert refused.wait() != 0
    assert "[scheduler] driver: 'ip_scheduler.IPScheduler' is neither one of" in refused.log
    assert "No module named 'nova'" in refused.log


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
    assert "5 passed" in text
    (decided,) = [json.loads(line) for line in text.splitlines() if line.startswith('{"')]
    left = [["h2", "n2"], ["h3", "n3"]]
    assert decided["filters"][-1] == {"name": "CalmHostsFilter", "passed": left}
    assert decided["selected"] == left
    assert text.count("ACTIVE") >= 4
    assert "Filter CalmHostsFilter returned" in text
