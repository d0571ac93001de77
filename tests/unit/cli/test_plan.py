"""``plan`` and the end of ``explain``: on our own tables, on Nova's, and without a database."""

import json
import pathlib

import pytest

from conductor_stub import server_rows
from scheduler import exit_codes, objects
from scheduler.db.database import Database
from scheduler.engine.record import DecisionRecord
from scheduler.explain.refusal import Finding, Refusal
from scheduler.explain.store import Store
from tests.builders import a_request
from tests.novas import Nova

pytestmark = pytest.mark.slow
GB = 1024
#: Gigabytes of the servers on each host of 8 GB: room for 7 needs one move.
SERVERS = {"a1": [2], "a2": [2, 3], "a3": [2, 3]}


def an_instance(number, host, gigabytes):
    sizes = {"memory_mb": gigabytes * GB, "vcpus": 1, "root_gb": 1, "ephemeral_gb": 0}
    made = objects.Instance(
        uuid=f"00000000-0000-4000-b000-{number:012}", host=host, node=host, **sizes,
        project_id="p", vm_state="active",
    )  # fmt: skip
    made.flavor = a_request(flavor=sizes).flavor
    return made


@pytest.fixture
def fleet(request, make_url, config_file, run):
    """The hosts with their servers, in one database or in a cell of Nova's."""
    nova = Nova(make_url)
    if getattr(request, "param", "ours") == "ours":
        nova.urls["a"] = make_url()
        pathlib.Path(config_file).write_text(f"[database]\nconnection = {nova.urls['a']}\n")
        assert run("db", "sync")[0] == exit_codes.OK
    else:
        nova.add_cell("a", [])
        named = {"database": nova.urls["cell0"], "api_database": nova.urls["api"]}
        text = "".join(f"[{group}]\nconnection = {url}\n" for group, url in named.items())
        pathlib.Path(config_file).write_text(text)
    number = 0
    for host, sizes in SERVERS.items():
        used = {"memory_mb_used": sum(sizes) * GB, "free_ram_mb": (8 - sum(sizes)) * GB}
        nova.add_hosts("a", [host], ram_allocation_ratio=1.0, **used)
        for size in sizes:
            number += 1
            nova.change("a", server_rows.create_instance, an_instance(number, host, size))
    assert run("flavor", "create", "big", "--ram", str(7 * GB), "--disk", "1")[0] == exit_codes.OK
    return nova


#: Of each plan its summary and its moves, all of them away from the first host.
PLANS = {
    "drain a1": ("drain: 1 of 1 (a1), 1 move in 1 wave", 1),
    "fit --flavor big": ("fit: 1 of 1 (a1), 1 move in 1 wave", 1),
    "free-hosts 1": ("free-hosts: 1 of 1 (a1), 1 move in 1 wave", 1),
    "rules": ("rules: 0 of 0, 0 moves in 0 waves", 0),
}


@pytest.mark.parametrize("fleet", ["ours", "Nova's"], indirect=True)
@pytest.mark.usefixtures("fleet")
def test_plans_in_words_as_json_and_as_a_page(run, tmp_path):
    for words, (summary, moves) in PLANS.items():
        page = tmp_path / "plan.html"
        status, out, _err = run("plan", *words.split(), "-o", str(page))
        assert (status, out.splitlines()[0]) == (exit_codes.OK, summary)
        assert out.count("00000000-0000-4000-b000-000000000001") == moves  # in one piece
        text = page.read_text()
        assert summary in text
        assert "http" not in text  # nothing from elsewhere
        assert text.count("<polyline") == 2  # before and after
        _status, out, _err = run("plan", *words.split(), "-f", "json")
        found = json.loads(out)
        assert [each["source"] for each in found["moves"]] == ["a1"] * moves
        assert found["memory"]["before"] == [0.625, 0.625, 0.25]


@pytest.mark.usefixtures("fleet")
def test_room_is_sought_for_the_cells_and_devices_of_a_flavor(config_file, run):
    with pathlib.Path(config_file).open("a") as file:
        file.write("[filter_scheduler]\nenabled_filters = RamFilter,NUMATopologyFilter\n")
    pinned = ("--ram", "64", "--property", "hw:cpu_policy=dedicated")
    assert run("flavor", "create", "pinned", *pinned)[0] == exit_codes.OK
    status, out, _err = run("plan", "fit", "--flavor", "pinned")
    assert (status, out.splitlines()[0]) == (
        exit_codes.FAILURE,
        "fit: 0 of 1, 0 moves in 0 waves",
    )
    assert "NUMATopologyFilter removed all 3 hosts" in out
    _status, shell, _err = run("plan", "fit", "--flavor", "pinned", "--shell")
    assert shell.startswith("# ")
    assert shell[2:].rstrip() in out


@pytest.mark.usefixtures("fleet")
def test_replay_takes_the_same_fleet(run, tmp_path):
    day = tmp_path / "day.csv"
    day.write_text("arrival,lifetime,flavor\n0,,1/7\n5,,1/6\n")
    status, out, _err = run("replay", str(day), "--fleet-from-database", "-f", "json")
    assert status == exit_codes.OK
    found = json.loads(out)["configurations"]["configured"]
    assert (found["requests_refused"], found["end"]["hosts"], found["end"]["servers"]) == (1, 3, 6)
    without = ("--fleet-from-database", "--without-host", "a1", "-f", "json")
    _status, out, _err = run("replay", str(day), *without)
    found = json.loads(out)["configurations"]["configured"]
    assert (found["requests_refused"], found["end"]["hosts"], found["end"]["servers"]) == (2, 2, 4)


FIT = "1 move(s) would make room: nova-scheduler-manage plan fit --flavor big --count 1"


@pytest.mark.parametrize(("flavor", "asked", "reason", "ending", "limit"), [
    ("big", {}, "RamFilter", FIT, None),
    ("big", {}, "RamFilter", None, "SEARCH_SECONDS"),
    ("big", {}, "RamFilter", None, "READING_SECONDS"),
    (
        "big",
        {"availability_zone": "nova", "project_id": "p 1"},
        "RamFilter",
        f"{FIT} --az nova --project 'p 1'",
        None,
    ),
    ("big", {}, "ComputeFilter", None, None),
    ("gone", {}, "RamFilter", None, None),
])  # fmt: skip
def test_an_explanation_ends_with_the_moves_that_make_room(
    fleet, config_file, run, monkeypatch, flavor, asked, reason, ending, limit
):
    """Neither reading nor the search takes longer than its *limit*."""
    if limit:
        monkeypatch.setattr(f"scheduler.cli.plan.{limit}", -1)
    with pathlib.Path(config_file).open("a") as file:
        file.write("[DEFAULT]\ntransport_url = fake://\n")
    told = DecisionRecord("req-1", ("u1",), 1, 7, outcome="no_host_fits", failure="No")
    told.request = a_request(flavor={"name": flavor}, **asked)
    told.refusal = Refusal(0, [Finding(reason, "ram.short", "too little", 3)])
    database = Database(fleet.urls["a"])
    store = Store(database, "sched1", 7, 1000)
    store.put(told)
    store.close()
    database.dispose()
    status, out, _err = run("explain", "u1")
    assert status == exit_codes.OK
    last = out.rstrip().splitlines()[-1]
    assert last == ending if ending else "make room" not in out
