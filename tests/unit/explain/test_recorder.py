"""Every decision leaves one record: kept within bytes, told once, whatever the driver is."""

import json

import pytest

from scheduler import errors
from scheduler.engine.record import SELECTED, DecisionRecord
from scheduler.explain.answer import to_dict
from scheduler.explain.recorder import Memory, Recorder, size_of
from scheduler.manager import SchedulerManager
from tests.builders import a_conf, a_request
from tests.unit.drivers.scheduling import a_driver
from tests.unit.evaluation.builders import a_fleet
from tests.unit.rpc.fakes import RecordingDriver

UUIDS = ["00000000-0000-4000-a000-000000000001", "00000000-0000-4000-a000-000000000002"]


class Context:
    request_id = "req-1"


def a_record(number=1):
    return DecisionRecord(f"req-{number}", (f"uuid-{number}",), 1, 7)


def test_the_oldest_make_room():
    limit = 6 * size_of(a_record())  # half of it is for details
    memory = Memory(limit)
    for number in range(1, 6):
        memory.append(a_record(number))
    assert [each.request_id for each in memory] == ["req-3", "req-4", "req-5"]
    assert memory.nbytes <= limit
    assert [each.request_id for each in memory.find("uuid-4")] == ["req-4"]
    assert [each.request_id for each in memory.find("req-3")] == ["req-3"]
    assert not memory.find("req-1")
    assert [each.sequence for each in memory.since(3)] == [4, 5]
    assert [memory.get(3), memory.get(1)] == [memory[0], None]
    nothing = Memory(0)
    nothing.append(a_record())
    assert (len(nothing), nothing.nbytes) == (0, 0)


def test_details_go_before_records_and_both_stay_within_the_limit():
    driver = a_driver(a_fleet(*([8192] * 50)))
    manager = SchedulerManager(a_conf(), driver)
    memory = manager.recorder.records
    memory.limit_bytes = 400_000
    for number in range(200):
        request = a_request(flavor={"memory_mb": 1 + number % 3})
        manager.select_destinations(
            Context, spec_obj=request, instance_uuids=[f"{number}"], return_objects=True
        )
        assert memory.nbytes <= memory.limit_bytes
    kept = list(memory)
    assert 5 < len(kept) < 200
    has_detail = [record.verdicts is not None for record in kept]
    assert has_detail == sorted(has_detail)
    assert has_detail[-1]


def test_recordings_join_and_a_listener_that_fails_harms_nobody(caplog):
    heard = []
    recorder = Recorder()
    recorder.listeners += [lambda record: record.nothing, heard.append]
    with recorder.decision("Outer", Context, a_request(), UUIDS) as outer:
        with recorder.decision("Inner", Context, a_request(), UUIDS) as inner:
            assert inner is outer
        assert not heard
    assert heard == list(recorder.records) == [outer]
    assert (outer.driver, outer.num_instances, outer.outcome) == ("Outer", 2, SELECTED)
    assert "could not be recorded" in caplog.text


@pytest.mark.parametrize("driver", ["filter_scheduler", "caching_scheduler", "chance_scheduler"])
def test_every_driver_leaves_a_record(driver):
    manager = SchedulerManager(a_conf(), a_driver(a_fleet(8192, 8192), driver))
    answer = manager.select_destinations(Context, spec_obj=a_request(), instance_uuids=UUIDS)
    [record] = manager.recorder.records
    assert [host for host, _node in record.chosen] == [each["host"] for each in answer]
    assert (record.request_id, list(record.instance_uuids)) == ("req-1", UUIDS)
    assert record.driver.lower() == driver.replace("_", "")
    assert json.loads(json.dumps(to_dict(record)))["chosen"][0]["host"] == answer[0]["host"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NoValidHost(reason=""), "no_host_fits"),
        (errors.MaxRetriesExceeded(reason=""), "attempts_exhausted"),
        (errors.ClaimConflict(attempts=50), "attempts_exhausted"),
        (errors.StateUnavailable(reason="old"), "state_too_old"),
        (errors.InvalidRequest(field="f", reason="r"), "invalid_request"),
        (ZeroDivisionError("x"), "internal_fault"),
    ],
)
def test_errors_have_stable_codes(error, code):
    driver = RecordingDriver()
    driver.answer = error
    manager = SchedulerManager(a_conf(), driver)
    kind = type(error) if isinstance(error, errors.NovaException) else errors.NovaException
    with pytest.raises(kind):
        manager.select_destinations(Context, spec_obj=a_request(), instance_uuids=UUIDS)
    [record] = manager.recorder.records
    assert (record.outcome, record.driver) == (code, "RecordingDriver")
    assert str(error) in str(record.failure)
    with pytest.raises(errors.InvalidRequest):  # of which no driver gets to know
        manager.select_destinations(Context, spec_obj=None)
    [_earlier, record] = manager.recorder.records
    assert (record.outcome, record.driver, record.request_id) == ("invalid_request", "", "req-1")


@pytest.mark.parametrize("exposes", [False, True])
def test_callers_get_counts_if_that_is_wanted(exposes):
    text = "No valid host was found. There are not enough hosts available."
    counts = " Removed of 2 hosts: RamFilter 2 (ram.insufficient 1, ram.physical 1)."
    conf = a_conf(scheduler__expose_reasons=exposes)
    fleet = a_fleet(512, 8192)
    fleet["compute_nodes"][1]["memory_mb"] = 256
    manager = SchedulerManager(conf, a_driver(fleet))
    request = a_request(flavor={"memory_mb": 1024})
    with pytest.raises(errors.NoValidHost) as caught:
        manager.select_destinations(Context, spec_obj=request, instance_uuids=UUIDS)
    assert sorted(str(caught.value)) == sorted(text + counts * exposes)
    assert manager.recorder.records[0].failure == text


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, "(flavor m1.tiny, any zone, 1 hosts considered, 1 passed the filters, "),
        (
            {"flavor": {"name": "big one"}, "availability_zone": "az1"},
            "(flavor big one, zone az1, ",
        ),
        ({"flavor": {"name": None}}, "(flavor unnamed, any zone, "),
    ],
)
def test_the_line_of_a_decision_says_what_was_asked_for(wanted, words, caplog):
    caplog.set_level("INFO")
    driver = a_driver(a_fleet(8192))
    SchedulerManager(driver.conf, driver).select_destinations(
        Context, spec_obj=a_request(**wanted), instance_uuids=UUIDS[:1]
    )
    assert f"Placement of 1 instance(s) [{UUIDS[0]}]: selected [h1] {words}" in caplog.text
