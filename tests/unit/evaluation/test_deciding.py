"""What a case decides: the engine's answer in the words of the format."""

import pytest

from scheduler.evaluation.behaviour import CURRENT, NEWTON, Configuration
from scheduler.evaluation.deciding import decide as decide_with
from tests.unit.evaluation.builders import UUIDS, a_case, a_fleet, a_node, a_request, a_service

H1, H2, H3 = (["h1", "h1"], ["h2", "h2"], ["h3", "h3"])
LATER = "2026-11-21T00:00:10Z"
AGAIN = {"request": a_request(), "instance_uuids": UUIDS[1:2]}


def decide(case, behaviour):
    return decide_with(case, behaviour, Configuration())


@pytest.fixture(params=[CURRENT, NEWTON], ids=lambda each: each.name)
def either(request):
    return request.param


def test_a_placement():
    assert decide(a_case(a_fleet(512, 2048, 4096)), CURRENT) == {
        "filters": [{"name": "RamFilter", "passed": [H2, H3]}],
        "passed": [H2, H3],
        "limits": {"h2/h2": {"memory_mb": 8192.0}, "h3/h3": {"memory_mb": 8192.0}},
        "weights": {"h2/h2": 0.5, "h3/h3": 1.0},
        "selected": [H3],
        "state_after": {
            "h3/h3": {
                "free_ram_mb": 3072,
                "free_disk_mb": 99 * 1024,
                "vcpus_used": 1,
                "num_instances": 1,
                "num_io_ops": 1,
            }
        },
    }


@pytest.mark.parametrize(
    ("fleet", "change"),
    [
        ((4096, 4096), {}),
        ((4096, 2048), {"filter_scheduler": {"host_subset_size": 2}}),
        ((4096, 3072, 1024), {"instance_uuids": UUIDS[:2]}),
    ],
    ids=["equal weights", "a subset", "equal weights for the second instance"],
)
def test_a_choice_that_is_not_forced_is_left_out(fleet, change):
    answer = decide(a_case(a_fleet(*fleet), **change), CURRENT)
    assert "weights" in answer
    assert not {"selected", "state_after", "alternates", "error"} & answer.keys()


def test_nothing_fits(either):
    assert decide(a_case(a_fleet(512)), either) == {
        "filters": [{"name": "RamFilter", "passed": []}],
        "passed": [],
        "error": "NoValidHost",
    }


def test_not_all_instances_fit():
    case = a_case(a_fleet(1536), instance_uuids=UUIDS[:2], config={"DEFAULT": {}})
    case.fleet["compute_nodes"][0]["memory_mb"] = 1536
    answer = decide(case, CURRENT)
    assert answer["error"] == "NoValidHost"
    assert answer["passed"] == [H1]
    assert answer["weights"] == {"h1/h1": 0.0}
    assert "selected" not in answer


def test_forcing_skips_the_filters(either):
    case = a_case(a_fleet(512, 4096), request=a_request(force_hosts=["h1"]))
    answer = decide(case, either)
    assert (answer["filters"], answer["passed"], answer["selected"]) == ([], [H1], [H1])
    assert "limits" not in answer


def test_newton_does_not_know_the_list_of_instances():
    case = a_case(a_fleet(4096), instance_uuids=UUIDS[:2])
    assert decide(case, CURRENT)["selected"] == [H1, H1]
    assert decide(case, NEWTON)["selected"] == [H1]


def test_the_old_form_of_requests(either):
    flavor = {"memory_mb": 1024, "root_gb": 1, "ephemeral_gb": 0, "vcpus": 1}
    properties = {"uuid": UUIDS[0]}
    spec = {"num_instances": 2, "instance_type": flavor, "instance_properties": properties}
    case = a_case(a_fleet(4096), legacy={"request_spec": spec, "filter_properties": {}})
    assert decide(case, either)["selected"] == [H1, H1]


def test_alternates():
    case = a_case(a_fleet(4096, 2048, 3072), return_alternates=True)
    assert decide(case, CURRENT)["alternates"] == [[H3, H2]]


def test_cells_keep_their_alternates():
    cells = [{"uuid": f"c{number}", "hosts": [f"h{number}"]} for number in (1, 2)]
    fleet = {**a_fleet(4096, 2048, 3072), "cells": cells}
    assert decide(a_case(fleet, return_alternates=True), CURRENT)["alternates"] == [[]]


@pytest.mark.parametrize(
    "change",
    [
        {"filter_scheduler": {"enabled_filters": ["NoSuchFilter"]}},
        {"filter_scheduler": {"no_such_option": 1}},
        {"driver": "no_such_driver"},
    ],
    ids=["filter", "option", "driver"],
)
def test_a_scheduler_that_does_not_start(either, change):
    answer = decide(a_case(a_fleet(4096), **change), either)
    assert answer["stage"] == "startup"
    assert answer.keys() == {"error", "stage"}


def test_a_request_that_is_refused(either):
    request = a_request()
    request["nova_object.data"]["flavor"]["nova_object.data"]["memory_mb"] = "much"
    answer = decide(a_case(a_fleet(4096), request=request), either)
    assert answer == {"error": "InvalidRequest", "crash": True}


def test_an_error_that_nobody_expected_is_logged_and_ends_only_its_request(either, caplog):
    fleet = a_fleet(4096)
    fleet["compute_nodes"][0]["free_ram_mb"] = "much"
    answer = decide(a_case(fleet), either)
    assert answer["crash"]
    assert "suite/d1" in caplog.text


def in_steps(*steps, **content):
    asked = [{"request": a_request(), "instance_uuids": UUIDS[:1]}, *steps]
    return a_case(a_fleet(4096, 3584), steps=asked, **content)


def selected(case, behaviour):
    return [step.get("selected") for step in decide(case, behaviour)["steps"]]


@pytest.mark.parametrize(
    ("behaviour", "expected"), [(CURRENT, [[H1], [H1]]), (NEWTON, [[H1], [H2]])]
)
def test_who_keeps_the_books_between_requests(behaviour, expected):
    assert selected(in_steps({"now": LATER, **AGAIN}), behaviour) == expected


def test_newton_believes_the_next_report():
    report = a_node("h1", 1, free_ram_mb=4096, updated_at=LATER)
    assert selected(in_steps({"compute_nodes": [report], **AGAIN}), NEWTON) == [[H1], [H1]]


def test_a_step_may_only_change_something(either):
    answer = decide(in_steps({"delete_nodes": [["h1", "h1"]]}, AGAIN), either)
    assert answer["steps"][1] == {}
    assert answer["steps"][2]["passed"] == [H2]


def test_the_clock_is_that_of_the_step(either):
    steps = {"now": "2026-11-21T00:01:00Z", **AGAIN}
    case = in_steps(steps, filter_scheduler={"enabled_filters": ["ComputeFilter"]})
    assert decide(case, either)["steps"][1]["passed"] == []


@pytest.mark.parametrize(("tick", "passed"), [(False, [H1, H2]), (True, [H2])])
def test_the_caching_driver_reads_when_its_task_runs(tick, passed):
    change = {"services": [a_service("h2")], "tick": tick, **AGAIN}
    case = in_steps(change, driver="caching_scheduler")
    assert decide(case, NEWTON)["steps"][1]["passed"] == passed


@pytest.mark.parametrize(
    ("ignored", "expected"),
    [
        (["h2"], {"passed": [["h1", None]], "selected": [["h1", None]]}),
        ([], {"passed": [["h1", None], ["h2", None]]}),
        (["h1", "h2"], {"passed": [], "error": "NoValidHost"}),
    ],
)
def test_the_chance_driver(ignored, expected):
    case = a_case(a_fleet(1, 1), driver="chance_scheduler", request=a_request(ignore_hosts=ignored))
    assert decide(case, NEWTON) == expected
