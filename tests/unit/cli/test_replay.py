"""``replay``: pages, numbers and errors; without broker and database."""

import functools
import json
import pathlib

import pytest

from scheduler import exit_codes

pytestmark = pytest.mark.slow

DAY = """arrival,lifetime,flavor,count,group,zone
0,3600,4/16,2,,
10,,16/64,3,,
20,7200,8/32/100,1,anti-affinity:front,zone-1
9000,,64/256,2,,
"""
FLEET = ("--fleet", "4 × 64 cores/256 GiB, 2 zones", "--set", "ram_allocation_ratio=1")
STACKING = "ram_weight_multiplier=-1;io_ops_weight_multiplier=0"


@pytest.fixture
def replay(config_file, run, tmp_path):
    """Run the command on a day; give its status and what it prints."""
    pathlib.Path(config_file).write_text("[database]\nconnection = sqlite:////nowhere/at/all\n")
    day = tmp_path / "day.csv"
    day.write_text(DAY)
    return functools.partial(run, "replay", str(day))


def test_pages_and_numbers_are_the_same_each_time(replay, tmp_path):
    pages, numbers = [], []
    for name in ("one.html", "two.html"):
        page = tmp_path / name
        status, out, err = replay(*FLEET, "--against", STACKING, "-o", str(page), "-f", "json")
        assert status == exit_codes.OK
        assert "8 decisions" in err
        pages.append(page.read_bytes())
        numbers.append(out)
    assert pages[0] == pages[1]
    assert b"x: hours" in pages[0]
    assert not [each for each in (b"<script", b"http", b"url(") if each in pages[0]]
    assert numbers[0] == numbers[1]
    found = json.loads(numbers[0])
    assert list(found["configurations"]) == ["configured", STACKING]
    assert found["configurations"]["configured"]["requests"] == 4
    assert found["settings"][STACKING] == ["ram_allocation_ratio=1", STACKING]
    (difference,) = found["differences"]
    assert difference["elsewhere"] > 0
    assert difference["refused_only_by"] == {"configured": 1, STACKING: 0}
    assert difference["first"]["why"]["configured"].startswith("host-1, host-2 were chosen")
    assert difference["first"]["why"][STACKING].startswith("host-1 (x2) was chosen")


def test_other_fleets_and_another_file(replay, tmp_path):
    other, page = tmp_path / "stack <&>.conf", tmp_path / "page.html"
    other.write_text("[filter_scheduler]\nram_weight_multiplier = -1\n")
    scaled = ("--scale-hosts", "0.5", "--add-hosts", "like:host-1:3", "--without-host", "host-2")
    status, out, _err = replay(*FLEET, "--seed", "3", *scaled[2:], "-f", "json")
    assert status == exit_codes.OK
    assert json.loads(out)["configurations"]["configured"]["end"]["hosts"] == 6
    status, out, _err = replay(*FLEET, "--against", str(other), "--compact", "-o", str(page))
    assert status == exit_codes.OK
    assert "stack &lt;&amp;&gt;" in page.read_text()
    assert "only by stack <&>" in " ".join(out.split())
    assert "Smallest fleet that holds this workload: 2 hosts" in " ".join(out.split())
    crowded = ("2 × 64 cores/256 GiB, 999999999 zones", "--against", STACKING, "--jobs", "9" * 20)
    status, out, err = replay("--fleet", *crowded, "--compact", "-o", "/dev/full")
    assert (status, "…" in out, "Smallest fleet" in out) == (exit_codes.FAILURE, False, True)
    assert "error: --output: /dev/full: No space left on device\n" in err
    alike = ("--set=ram_weight_multiplier=-1", "--set=io_ops_weight_multiplier=0")
    alike += ("--against", str(other), "--against=ram_weight_multiplier=-1")
    found = json.loads(replay(*FLEET, *scaled[:2], *alike, "-f", "json")[1])
    assert found["configurations"]["configured"]["end"]["hosts"] == 2
    assert [each["elsewhere"] for each in found["differences"]] == [0, 0]


def test_one_request_that_fits_more_often_than_is_tried(replay, tmp_path):
    (tmp_path / "day.csv").write_text("arrival,lifetime,flavor\n0,1,1/1\n")
    page = tmp_path / "page.html"
    status, out, _err = replay(*FLEET, "--inflate", "-o", str(page))
    assert status == exit_codes.OK
    assert "Largest workload that this fleet holds: at least 64 times" in " ".join(out.split())
    assert "at least 64 times (median; at least 64 to" in " ".join(page.read_text().split())
    assert page.read_text().count('<circle class="c0" cx="0.0" cy="') == 10  # one sample is a dot
    _status, out, _err = replay(*FLEET, "--inflate", "-f", "json")
    found = json.loads(out)["inflate"]
    assert (found["median"], found["at_least"]) == (64, True)


def test_a_gap_of_ages_is_sampled_no_more_often_than_can_be_seen(replay, tmp_path, monkeypatch):
    """An hour of it after the other would take for ever."""
    monkeypatch.setattr("scheduler.cli.replay._MOST_SAMPLES", 100)
    (tmp_path / "day.csv").write_text("arrival,lifetime,flavor\n0,1,1/1\n1e12,,1/1\n")
    status, out, _err = replay(*FLEET, "-f", "json")
    assert status == exit_codes.OK
    assert 100 <= len(json.loads(out)["configurations"]["configured"]["series"]) <= 102


def test_lenient_replays_say_what_they_left_out(replay, tmp_path):
    (tmp_path / "day.csv").write_text(f"{DAY}9001,,x,1,,\n")
    page = tmp_path / "page.html"
    status, out, _err = replay("--fleet", "4 × 64 cores/100 GiB", "--lenient", "-o", str(page))
    assert status == exit_codes.OK
    assert "day.csv, line 6: flavor" in page.read_text()
    said = " ".join(out.split())
    assert "day.csv, line 6: flavor 'x' is not VCPUS/GIB[/DISK_GB]" in said
    assert "day.csv, line 5: flavor 64/256: No host fits: RamFilter removed all 4 hosts" in said


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "describe one, or take it --fleet-from-database"),
        (["--fleet-from-database"], "sqlite:////nowhere/at/all does not exist; create it with"),
        (["--fleet", f"{'9' * 5000} × 1 core/1 GiB"], f"fleet '{'9' * 79}: not of the form"),
        (
            ["--fleet", "4 × 64 cores/100 GiB"],
            "line 5: flavor 64/256: No host fits: RamFilter",
        ),
        ([*FLEET, "--set", "ram_weight=1"], "--set ram_weight: no decision reads"),
        ([*FLEET, "--against", "ram_weight_multiplier=x"], "--against ram_weight_multiplier: 'x'"),
        ([*FLEET, "--against", "/x"], "--against /x: the file cannot be read: No such file"),
        ([*FLEET, "--without-host", "h"], "--without-host h"),
        ([*FLEET, "--scale-hosts", "0"], "--scale-hosts: 0 is out of bounds"),
        ([*FLEET, "--scale-hosts", "5002"], "--scale-hosts: 5002 is out of bounds"),
        ([*FLEET, "--from-day", "9"], "--from-day, --days: no arrivals are left of 0.104 days"),
        (
            [*FLEET, "--warm-up", "2.6"],
            "--warm-up: longer than the workload, which lasts 2.5 hours",
        ),
        ([*FLEET, "--set=DEFAULT.ram_allocation_ratio=1e999"], "ratio: inf is no finite number"),
        ([*FLEET, "--against=ram_allocation_ratio=nan"], "ratio: nan is no finite number"),
        (
            ["--fleet", "1 × 64 cores/256 GiB", "--without-host", "host-1"],
            "no compute host is known",
        ),
    ],
)
def test_mistakes_are_named(replay, words, complaint):
    status, _out, err = replay(*words)
    assert status == exit_codes.FAILURE
    assert complaint in " ".join(err.split())


def test_a_database_without_hosts_is_no_fleet(refused, database, tmp_path):
    (tmp_path / "day.csv").write_text(DAY)
    said = refused("replay", str(tmp_path / "day.csv"), "--fleet-from-database")
    assert ".sqlite: there is no compute host in it" in said
    assert "there is no compute host in it" in refused("plan", "rules")


@pytest.mark.parametrize(
    ("option", "text", "complaint"),
    [
        *(("--warm-up", each, "is not a number of at least 0") for each in ("-1", "nan", "inf")),
        ("--from-day", "-1", "is not a number of at least 0"),
        ("--days", "nan", "is not a number of at least 0"),
        *(("--output", each, "cannot be written") for each in ("/no/x.html", "/", "/etc/passwd/x")),
    ],
)
def test_a_mistake_is_named_before_anything_is_replayed(replay, option, text, complaint):
    status, _out, err = replay(*FLEET, f"{option}={text}")
    assert status == exit_codes.USAGE
    assert f"{option}: {text!r} {complaint}" in err
