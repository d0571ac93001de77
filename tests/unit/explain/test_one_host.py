"""What ``explain --host`` says of one host: why it fell out, or which place it had."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.explain.recorder import Recorder
from scheduler.manager import SchedulerManager
from tests.builders import a_conf, a_request
from tests.unit.drivers.scheduling import a_driver
from tests.unit.evaluation.builders import a_fleet, a_service
from tests.unit.explain.asking import explain

UUID = "00000000-0000-4000-a000-000000000001"
FILTERS = ["RamFilter", "DiskFilter", "ComputeFilter"]


class Context:
    request_id = "req-7"


def decided(request: dict[str, Any] | None = None, defer: Any = None) -> tuple[Any, Any]:
    """A manager that has chosen h1, with h2 as alternate; h3 has too little, h4 no service."""
    rows = [a_service(host) for host in ("h1", "h2", "h3")]
    rows[2]["disabled"] = True
    fleet = a_fleet(8192, 4096, 512, 8192, services=rows)
    conf = a_conf()
    driver = a_driver(fleet, enabled_filters=FILTERS, options={}, host_subset_size=1)
    driver.recorder = Recorder(**({} if defer is None else {"defer": defer}))
    manager = SchedulerManager(conf, driver)
    spec = a_request(**{"flavor": {"memory_mb": 2048, "root_gb": 1}, **(request or {})})
    manager.select_destinations(
        Context, spec_obj=spec, instance_uuids=[UUID], return_objects=True, return_alternates=True
    )
    return manager, conf


def told_of(host: str, manager: Any, conf: Any) -> Any:
    """What is said of *host*, as data and in a line."""
    [record] = json.loads(explain(manager, conf, UUID, "--host", host, "--json"))
    return record["on_host"], explain(manager, conf, UUID, "--host", host)


CHOSEN = {"status": "passed", "chosen": 1, "alternate": False, "rank": 1, "of": 2, "total": 1.0}
OTHER = {"status": "passed", "chosen": 0, "alternate": True, "rank": 2, "of": 2, "total": 0.5}
RAM = {"name": "RAMWeigher", "raw": 4096.0, "normalised": 0.5, "multiplier": 1.0, "weighted": 0.5}
LITTLE = {
    "status": "removed",
    "filter": "RamFilter",
    "also_fails": ["ComputeFilter"],
    "chosen": 0,
    "alternate": False,
}
IGNORED = {"ignore_hosts": ["h3"]}


@pytest.mark.parametrize(
    ("host", "request_given", "expected", "line"),
    [
        pytest.param("h1", {}, CHOSEN, "h1 was chosen: number 1 of 2, weight 1.", id="chosen"),
        pytest.param(
            *(
                "h2",
                {},
                {**OTHER, "weighers": [RAM]},
                "h2 passed every filter, an alternate: number 2 of 2, weight 0.5",
            ),
            id="an alternate",
        ),
        pytest.param(
            *("h3", {}, LITTLE, "2048 MiB of memory wanted, found: 512 MiB"), id="removed"
        ),
        pytest.param(
            *("h3", IGNORED, {"status": "never_evaluated"}, "h3 was never evaluated: "),
            id="left out before any filter",
        ),
        pytest.param(
            *("h4", {}, {"status": "never_evaluated"}, "no record of a compute service"),
            id="without a service",
        ),
    ],
)
def test_a_host_of_a_decision(
    host: str, request_given: dict[str, Any], expected: dict[str, Any], line: str
) -> None:
    [[found], text] = told_of(host, *decided(request_given))
    assert {name: found[name] for name in expected} == expected
    assert (found["host"], found["as_of"]) == (host, "decision")
    assert line in text


def test_a_host_that_is_not_there() -> None:
    found, text = told_of("h9", *decided())
    assert found == []
    assert "There is no such host now." in text


@pytest.mark.parametrize(
    ("host", "status"), [("h1", "passed"), ("h2", "passed"), ("h3", "removed")]
)
def test_where_details_are_forgotten_filters_are_asked_anew(host: str, status: str) -> None:
    manager, conf = decided()
    [record] = manager.recorder.records.find(UUID)
    record.verdicts = None
    [[found], text] = told_of(host, manager, conf)
    assert (found["status"], found["as_of"], found["numbers_of"]) == (status, "now", "now")
    assert "(as of now: what was is forgotten)" in text


def test_without_details_and_request_nothing_is_known() -> None:
    manager, conf = decided()
    [record] = manager.recorder.records.find(UUID)
    record.verdicts = record.request = None
    [[found], text] = told_of("h3", manager, conf)
    assert found["status"] == "unknown"
    assert "h3 is not remembered" in text


def test_the_closest_host_of_each_reason_is_kept_though_the_decision_succeeded() -> None:
    """h3 is closest, as the only one; a host asked for by name shows the numbers kept of it."""
    manager, conf = decided()
    table = manager.driver.host_manager.table
    table.update(table.rows["h3", "h3"], {"free_ram_mb": 300})
    [told] = json.loads(explain(manager, conf, UUID, "--host", "h3", "--json"))
    [closest], [of_h3] = told["closest"], told["on_host"]
    assert (closest["filter"], closest["reason"]) == ("RamFilter", "ram.insufficient")
    assert (closest["removed"], closest["wanted"]) == (1, "2048 MiB of memory")
    assert closest["numbers_of"] == "decision"
    example = {"host": "h3", "node": "h3", "found": "512 MiB free", "missing": 1536.0}
    assert closest["examples"] == [{**example, "also_fails": None}]
    assert (of_h3["found"], of_h3["numbers_of"]) == ("512 MiB free", "decision")
    assert "512 MiB free (1536 off)" in explain(manager, conf, UUID)


@pytest.mark.parametrize(
    ("is_replaced", "closest"), [(False, [("300 MiB free", "now")]), (True, [])]
)
def test_closest_hosts_that_change_before_the_look_are_those_of_now(
    is_replaced: bool, closest: list[Any]
) -> None:
    """A host that took the row of another one is not mistaken for it."""
    manager, conf = decided(defer=lambda _work: None)
    table = manager.driver.host_manager.table
    table.update(table.rows["h3", "h3"], {"free_ram_mb": 300})
    if is_replaced:
        table.given_at[table.rows["h3", "h3"]] = table.version
    [record] = json.loads(explain(manager, conf, UUID, "--json"))
    found = [(each["examples"][0]["found"], each["numbers_of"]) for each in record["closest"]]
    assert found == closest


def test_numbers_of_a_host_that_has_changed_are_those_of_now() -> None:
    manager, conf = decided()
    table = manager.driver.host_manager.table
    manager.recorder.records[0].closest.clear()  # another host was closer
    [before], _text = told_of("h3", manager, conf)
    table.update(table.rows["h3", "h3"], {"free_ram_mb": 300})
    [after], text = told_of("h3", manager, conf)
    assert (before["numbers_of"], after["numbers_of"]) == ("decision", "now")
    assert (after["status"], after["as_of"]) == ("removed", "decision")
    assert "found: 300 MiB" in text
