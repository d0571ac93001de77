"""Recorded decisions: all are answered again as recorded, and what cannot be read is named."""

import contextlib
import dataclasses
import gc
import gzip
import itertools
import json
import math
import os
import random
import resource
import time

import pytest

from scheduler import errors, objects
from scheduler.claims.backend import Offered, Request
from scheduler.engine.record import DecisionRecord
from scheduler.hosts.columns import CHANGED_BY_RESERVATIONS, COLUMN_TYPES
from scheduler.hosts.instances import TrackedInstance
from scheduler.recording.arrivals import read_arrivals, recorded_fleet
from scheduler.recording.checking import Recheck, RecordedTable
from scheduler.recording.journal import PAUSE_SECONDS, SEGMENT_SECONDS, Journal
from scheduler.recording.merging import Anonymous, merged
from scheduler.recording.segments import NAMES, Segment, Writer, save
from scheduler.replay.run import Run
from scheduler.replay.run import play as play_all
from scheduler.replay.virtual_fleet import VirtualFleet
from tests.builders import a_conf, a_request
from tests.unit.drivers.test_json_options import NamedHostFilter
from tests.unit.replay.test_virtual_fleet import UUIDS
from tests.waiting import Clock, wait_until


def a_fleet(**options):
    conf = a_conf(**{"DEFAULT__service_down_time": 2**31, **options})
    return VirtualFleet.from_description(conf, "6 × 8 cores/16 GiB/100 GiB, 2 zones")


def play(fleet):
    """A day with everything that changes hosts."""
    for number in range(0, 60, 3):
        spec = a_request(
            flavor={"memory_mb": 1024 * (1 + number % 4)},
            group={"policy": "anti-affinity", "uuid": "g", "name": "gold", "members": UUIDS[:9]},
            image={"hw_architecture": "x86_64"},
        )
        if number % 2:
            spec.instance_group = None
        spec.instance_uuid = UUIDS[number]
        fleet.place(spec, UUIDS[number : number + 3], seed=number, with_alternates=True)
        fleet.clock.advance(fleet.clock() + 10)
        fleet.finish_builds(fleet.reservations.of(UUIDS[number : number + 2]))
        if number % 4 == 0:
            fleet.remove(fleet.reservations.of(UUIDS[number : number + 1]))
        if number == 30:
            fleet.set_disabled("host-2")
            fleet.take_out("host-3")
            fleet.place(a_request(), UUIDS[31:32])  # it has its place, and is moved
    fleet.place(a_request(flavor={"memory_mb": 20000}), UUIDS[100:101])


@pytest.fixture
def recorded(tmp_path):
    return record(tmp_path, a_fleet(host_subset_size=2))


def record(folder, fleet):
    journal = Journal(fleet.driver, Writer(folder, "worker", 1, 100))
    play(fleet)
    journal.close()
    assert journal.left_out == 0
    return sorted(folder.glob("*.gz"))


def changed(path, number, change):
    """A copy of the segment at *path* whose line *number* is another."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    line = json.loads(lines[number])
    change(line)
    lines[number] = json.dumps(line)
    copy = path.with_name(f"changed{path.name}")
    copy.write_bytes(gzip.compress("\n".join(lines).encode()))
    return copy


def judged(*paths):
    recheck = Recheck()
    for path in paths:
        recheck.play(Segment(path))
    return recheck


def test_what_is_refused_as_wrong_by_now_is_another_answer(recorded):
    path = changed(*recorded, 1, lambda each: each["spec"]["nova_object.data"].pop("flavor"))
    tally = judged(path).tally
    assert (tally.decisions, len(tally.different)) == (22, 1)
    assert ": refused, recorded host-" in tally.different[0]


def something_happens(table, rng):
    """One change of hosts, services or servers, of which many are of the same few."""
    host = f"host-{rng.randrange(9)}"
    key = (host, rng.choice((host, "another")))
    node_id = 100 + 10 * int(host[-1]) + (host in key[1])
    values = {"node_id": node_id, "free_ram_mb": rng.randrange(9999), "cpu_info": rng.choice("ab")}
    record, seen = table.services.get(host), table.last_seen.get(host, 0.0)
    server = TrackedInstance(rng.choice(UUIDS[:9]), host, updated_at=rng.randrange(9))
    changes = [
        lambda: table.put(key, values),
        lambda: key in table.rows and table.remove(key),
        lambda: table.add(table.row_numbers([host]) * 2, {"vcpus_used": 1}),
        lambda: table.set_service(host, {"disabled": rng.random() < 0.5}, seen),
        lambda: record and table.set_service(host, dict(record), seen + 1),
        lambda: record and rng.random() < 0.3 and table.set_service(host, None, 0),
        lambda: table.put_instance(host, server.uuid, server),
        lambda: table.drop_instance(server.uuid),
        lambda: table.cells.update(a=rng.random() < 0.5),
        lambda: table.set_aggregates({host: (objects.Aggregate(id=1, uuid="a", name="a"),)}),
    ]
    rng.choice(changes)()


def shown(table):
    """By compute node its values, the service of its host, and the servers."""
    documents = [name for name in table.pools if name not in CHANGED_BY_RESERVATIONS]
    numbers = [name for name in COLUMN_TYPES if not name.startswith("service_")]
    return {
        key: (
            [table.value(row, name) for name in numbers],
            [table.content(row, name) for name in documents],
            table.service(row).get("disabled"),
            table.last_seen.get(key[0]),
            dict(table.instances.get(key[0], {})),
            dict(table.cells),
        )
        for key, row in table.rows.items()
    }


def test_whatever_happens_between_two_decisions_is_recorded(tmp_path):
    options = {"enabled_filters": ["RetryFilter"]}
    fleet, rng, expected = a_fleet(**options), random.Random(3), []
    journal = Journal(fleet.driver, Writer(tmp_path, "worker", 1, 100))
    for number in range(600):  # two segments, each complete on its own
        fleet.clock.advance(fleet.clock() + 10)
        for _each in range(rng.randrange(4)):
            something_happens(fleet.table, rng)
        if number == 40:
            options |= {"ram_weight_multiplier": -1.0, "DEFAULT__service_down_time": 2**31}
            fleet.driver.reconfigured(a_conf(**options))()
        nodes = [fleet.table.value(row, "uuid") for row in fleet.table.rows.values()]
        offered = Offered(dict.fromkeys(rng.sample(nodes, len(nodes) // 2), 1))
        asked = Request(None, a_request(), (f"a-{number}", f"b-{number}"), True)
        expected.append(shown(fleet.table))
        with contextlib.suppress(errors.NoValidHost):
            record = DecisionRecord(None, asked.names, 2, number)
            fleet.driver.decide(asked, record, offered if number % 3 == 0 else None)
    journal.close()
    paths = sorted(tmp_path.glob("*.gz"))
    tallies = [judged(path).tally for path in paths]
    assert [(each.decisions, each.different) for each in tallies] == [(361, []), (239, [])]
    state, lines = RecordedTable(), itertools.chain.from_iterable(map(Segment, paths))
    for (place, line), wanted in zip(lines, expected, strict=True):
        state.apply(line)
        assert shown(state.table) == wanted, place


def test_bounds_that_weighers_have_learnt_are_in_each_segment(tmp_path):
    """Memory was so far apart once that disk decides from then on."""
    fleet = a_fleet(enabled_filters=["RetryFilter"], scheduler__semantics="newton")
    journal = Journal(fleet.driver, Writer(tmp_path, "worker", 1, 100))
    for lowest in (-(10**9), 16 * 1024):
        for host, *free in (("1", 10**5, 180_000), ("2", 5 * 10**4, 200_000), ("6", lowest, 0)):
            values = dict(zip(("free_ram_mb", "free_disk_mb"), free, strict=True))
            fleet.table.put((f"host-{host}", f"host-{host}"), values)
        outcome = fleet.place(a_request(), UUIDS[:1])
        fleet.remove(outcome.servers)
        fleet.clock.advance(fleet.clock() + SEGMENT_SECONDS + 1)
    journal.close()
    _first, second = sorted(tmp_path.glob("*.gz"))
    assert (outcome.hosts, judged(second).tally.same) == (["host-2"], 1)


def test_options_of_a_json_file_are_recorded(tmp_path):
    file = tmp_path / "options.json"
    file.write_text('{"host": ["host-4"]}')
    named = {"available_filters": [f"{NamedHostFilter.__module__}.NamedHostFilter"]}
    named |= {"enabled_filters": ["NamedHostFilter"]}
    named["DEFAULT__scheduler_json_config_location"] = str(file)
    tally = judged(*record(tmp_path, a_fleet(**named))).tally
    assert (tally.decisions, tally.different) == (22, [])


def test_half_a_history_leaves_no_file(tmp_path, recorded):
    with a_full_disk(tmp_path / "full"), pytest.raises(OSError, match="too large"):
        save(tmp_path / "full" / "all.jsonl.gz", merged([*map(Segment, recorded)]))
    assert not list((tmp_path / "full").iterdir())


def test_what_is_known_of_a_large_fleet_is_kept_from_the_garbage_collector(tmp_path, monkeypatch):
    """It would look through all that again and again, as it would through the host table."""
    monkeypatch.setattr("scheduler.hosts.host_manager.MANY_HOSTS", 1)
    fleet = a_fleet()
    fleet.place(a_request(), UUIDS[:1])
    gc.unfreeze()  # what the first read has set aside
    journal = Journal(fleet.driver, Writer(tmp_path, "worker", 1, 100))
    fleet.place(a_request(), UUIDS[1:2])
    journal.close()
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    assert frozen > 0


@contextlib.contextmanager
def no_folder(folder):
    yield
    folder.mkdir()


@contextlib.contextmanager
def a_full_disk(folder):
    """So few bytes are left that not even the header of a file has room."""
    folder.mkdir()
    _soft, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextlib.contextmanager
def a_slow_disk(folder):
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scheduler.recording.journal.WAITING", 0)
        yield


@pytest.mark.parametrize("fault", [no_folder, a_full_disk, a_slow_disk])
def test_what_could_not_be_written_is_a_gap_and_leaves_no_file(tmp_path, caplog, fault):
    """All hosts are only tried to be written now and then."""
    folder, fleet, clock = tmp_path / "away", a_fleet(), Clock()
    journal = Journal(fleet.driver, Writer(folder, "worker", 1, 100), clock)
    asked = itertools.count(23)
    with fault(folder):
        wait_until(lambda: fleet.place(a_request()) and next(asked) and journal.left_out > 4, 10)
        clock.now += PAUSE_SECONDS  # the next line to be lost has a gap
        more = journal.left_out + 2
        wait_until(lambda: fleet.place(a_request()) and next(asked) and journal.left_out > more, 10)
    assert caplog.text.count("Decisions are not recorded") == 1
    before = journal.left_out
    fleet.place(a_request())
    next(asked)
    assert journal.left_out == before + 1
    clock.now += PAUSE_SECONDS
    play(fleet)
    journal.close()
    tally = judged(*sorted(folder.glob("*.gz"))).tally
    assert (tally.missing, tally.different) == (journal.left_out, [])
    assert tally.same == tally.decisions == next(asked) - 1 - journal.left_out > 0
    assert journal.gaps >= 1
    assert f"line 2: {journal.left_out} decisions are missing before 2026-01-01T" in tally.gaps[0]


def two_workers(tmp_path, *, sees=True, behind=500):
    """A day of two workers: one places, the other *sees* that, and its clock is *behind*."""
    first, second = fleets = [a_fleet(), a_fleet()]
    writers = [Writer(tmp_path, name, 1, 100) for name in ("a", "b")]
    journals = [Journal(f.driver, w) for f, w in zip(fleets, writers, strict=True)]
    first.clock.advance(first.clock() + behind)
    second.table.put(("host-2", "host-2"), {"cell_uuid": UUIDS[90]})
    second.table.cells[UUIDS[90]] = True
    off = {**second.table.services["host-2"], "disabled_reason": "pink"}
    second.table.set_service("host-2", off, second.clock())
    for number in range(6):
        spec = a_request(project_id="red", user_id="ann")
        spec.ignore_hosts = ["host-1", "away"]
        spec.image = objects.ImageMeta(owner="green")
        placed = first.place(spec, UUIDS[number : number + 1])
        if sees:
            second.reservations.add(dataclasses.replace(placed.servers[0]))
        second.place(a_request(project_id="blue", user_id=""), UUIDS[number + 10 : number + 11])
        if sees:
            second.remove(second.reservations.of(UUIDS[4:5]))
    for each in journals:
        each.close()
    return sorted(tmp_path.glob("*.gz"))


def test_workers_are_merged_by_what_they_have_seen_of_each_other(tmp_path):
    lines = list(merged([*map(Segment, two_workers(tmp_path))]))
    assert [line["worker"] for line in lines] == ["a", "b"] * 6
    save(tmp_path / "all.jsonl.gz", lines)
    tally = judged(tmp_path / "all.jsonl.gz").tally
    assert (tally.decisions, tally.same, tally.different) == (12, 12, [])
    assert len(read_arrivals([tmp_path / "all.jsonl.gz"], errors.Faults()).arrivals) == 12


def test_a_server_has_ended_when_any_worker_has_seen_that(tmp_path):
    arrivals = read_arrivals(two_workers(tmp_path, behind=0), errors.Faults()).arrivals
    assert [a.uuids for a in arrivals if max(a.lifetimes) < math.inf] == [UUIDS[4:5]]


def test_a_fleet_is_that_of_the_earliest_file_whatever_comes_first(tmp_path):
    first, second = two_workers(tmp_path, behind=500)
    empty = tmp_path / "0.jsonl.gz"
    empty.write_bytes(gzip.compress(b""))
    fleets = [recorded_fleet(a_conf(), [empty, *each]) for each in ([second], [first, second])]
    assert fleets[0].clock() == fleets[1].clock()
    assert fleets[0].clock() < recorded_fleet(a_conf(), [first]).clock()


def test_workers_that_have_not_seen_each_other_are_merged_by_time(tmp_path):
    lines = merged([*map(Segment, two_workers(tmp_path, sees=False))])
    assert [line["worker"] for line in lines] == ["b"] * 6 + ["a"] * 6


def test_names_are_replaced_and_every_decision_is_the_same(recorded, tmp_path):
    folder = tmp_path / "two"
    folder.mkdir()
    for paths in (recorded, two_workers(folder)):
        names, target = Anonymous(), paths[0].with_name("x.jsonl.gz")
        segments = [*map(Segment, paths)]
        for each in segments:
            names.learn(each)
        count = save(target, map(names.line, merged(segments)))
        assert count == sum(1 for each in segments for _line in each)
        tally = judged(target).tally
        assert (tally.decisions, tally.same) == (count, count)
        text = gzip.decompress(target.read_bytes()).decode()
        named = ("red", "blue", "green", "pink", "gold", "ann", "away", 'worker":"worker')
        for name in (*named, *UUIDS[:91:10]):
            assert f'"{name}"' not in text
        assert names.replaced("on host-1, host-2") != "on host-1, host-2"


def test_old_segments_make_room(tmp_path):
    writer = Writer(tmp_path, "worker", 1, 8)
    for size, at in ((9 * 2**20, time.time()), (0, 0)):  # one is large, one of long ago
        old = tmp_path / "old-1.jsonl.gz"
        old.write_bytes(b"x" * size)
        os.utime(old, (at, at))
        assert not writer.write([{**dict.fromkeys(NAMES), "now": 1, "full": True}])
        assert not old.exists()
    writer.close()
    path, _second = sorted(tmp_path.iterdir())
    assert path.stat().st_mode & 0o777 == 0o600
    assert [line for _place, line in Segment(path)][0]["now"] == 1


def test_a_host_that_comes_back_takes_servers_again(tmp_path):
    fleet, key = a_fleet(DEFAULT__service_down_time=60), ("host-3", "host-3")
    journal = Journal(fleet.driver, Writer(tmp_path, "worker", 1, 100))
    put, remove = fleet.table.put, fleet.table.remove
    for change in (put, remove, put, put):
        change(key, *([{"node_id": 9}] if change is put else []))
        fleet.clock.advance(fleet.clock() + 10)
        fleet.place(a_request(), UUIDS[:1])
    fleet.clock.advance(fleet.clock() + 60)  # and now all of them are silent
    fleet.place(a_request(), UUIDS[:1])
    journal.close()
    events = read_arrivals([*tmp_path.glob("*.gz")], errors.Faults()).events
    assert [(each.host, each.is_off) for each in events[:-6]] == [(key[0], True), (key[0], False)]
    assert all(each.is_off for each in events[-6:])


def test_a_recording_is_a_workload(recorded):
    workload = read_arrivals(recorded, errors.Faults())
    assert len(workload.arrivals) == 22
    assert workload.arrivals[0].lifetimes[1:] == [math.inf, math.inf]
    assert 0 < workload.arrivals[0].lifetimes[0] <= 20
    fleet = recorded_fleet(a_conf(host_subset_size=2), recorded)
    assert len(fleet.table) == 6
    run = Run(fleet.copy(), events=workload.events)
    run.explain_again(run.ask(workload.arrivals[0]))
    assert fleet.table.host_of_instance.keys() < run.fleet.table.host_of_instance.keys()
    run = Run(fleet, events=workload.events)
    play_all(run, workload.arrivals)
    result = run.result()
    # Other seeds draw other hosts, and hosts keep their servers: about as many fit.
    assert result["requests"] == 22
    assert 1 <= result["requests_refused"] <= 10
    assert result["end"]["servers"] >= 30
    # One host was disabled and one went, which is so in a replay, too.
    assert [(each.host, each.is_off) for each in workload.events] == [
        ("host-2", True),
        ("host-3", True),
    ]
    assert result["end"]["hosts"] == 4
    twice = read_arrivals([*recorded, *recorded], errors.Faults())
    assert len(twice.arrivals) == 22  # merged: each request once
