"""What ``explain --host`` says of one host: why it fell out, or which place it had."""

import pytest

from scheduler.manager import SchedulerManager
from tests.builders import a_conf, a_request
from tests.unit.drivers.scheduling import a_driver
from tests.unit.evaluation.builders import a_fleet, a_service
from tests.unit.explain.asking import UUID, Context, printed, told

FILTERS = ["RamFilter", "DiskFilter", "ComputeFilter"]


def decided(request=None):
    """A manager that has chosen h1, with h2 as alternate; h3 has too little, h4 no service."""
    rows = [a_service(host) for host in ("h1", "h2", "h3")]
    rows[2]["disabled"] = True
    fleet = a_fleet(8192, 4096, 512, 8192, services=rows)
    driver = a_driver(fleet, enabled_filters=FILTERS, options={}, host_subset_size=1)
    manager = SchedulerManager(a_conf(), driver)
    spec = a_request(**{"flavor": {"memory_mb": 2048, "root_gb": 1}, **(request or {})})
    manager.select_destinations(
        Context, spec_obj=spec, instance_uuids=[UUID], return_objects=True, return_alternates=True
    )
    return manager


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


HOSTS = {
    "chosen": ("h1", {}, CHOSEN, "h1 was chosen: number 1 of 2, weight 1."),
    "an alternate": (
        *("h2", {}, {**OTHER, "weighers": [RAM]}),
        "h2 passed every filter, an alternate: number 2 of 2, weight 0.5",
    ),
    "removed": ("h3", {}, LITTLE, "2048 MiB of memory wanted, found: 512 MiB"),
    "left out before any filter": (
        *("h3", {"ignore_hosts": ["h3"]}, {"status": "never_evaluated"}),
        "h3 was never evaluated: ",
    ),
    "without a service": (
        *("h4", {}, {"status": "never_evaluated"}),
        "no record of a compute service",
    ),
}


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_of_a_decision(name):
    host, request, expected, line = HOSTS[name]
    manager = decided(request)
    found = on_host(manager, host)
    assert {name: found[name] for name in expected} == expected
    assert (found["host"], found["as_of"]) == (host, "decision")
    assert line in printed(manager, UUID, host)


def on_host(manager, host):
    [record] = told(manager, UUID, host)
    [found] = record["on_host"]
    return found


def test_a_host_that_is_not_there():
    assert "There is no such host now." in printed(decided(), UUID, "h9")


@pytest.mark.parametrize(
    ("host", "status"), [("h1", "passed"), ("h2", "passed"), ("h3", "removed")]
)
def test_where_details_are_forgotten_filters_are_asked_anew(host, status):
    manager = decided()
    [record] = manager.recorder.records.find(UUID)
    record.verdicts = None
    found = on_host(manager, host)
    assert (found["status"], found["as_of"], found["numbers_of"]) == (status, "now", "now")
    assert "(as of now: what was is forgotten)" in printed(manager, UUID, host)
    record.request = None
    assert on_host(manager, host)["status"] == "unknown"
    assert f"{host} is not remembered" in printed(manager, UUID, host)


ODD = "h\n1 [/x] \x1b[2J :smile:"


def test_names_of_hosts_are_shown_in_one_line_and_as_they_are():
    fleet = a_fleet(8192, services=[a_service(ODD)])
    fleet["compute_nodes"][0].update(host=ODD, hypervisor_hostname=ODD)
    driver = a_driver(fleet, enabled_filters=["RamFilter"], options={})
    manager = SchedulerManager(a_conf(), driver)
    manager.select_destinations(Context, spec_obj=a_request(), instance_uuids=[UUID])
    lines = printed(manager, UUID).splitlines()
    assert "h\\n1 [/x] \\x1b[2J :smile:" in lines[0]
    assert all(text.isprintable() for text in lines)


def with_less(manager):
    """*manager* after h3 has reported less memory."""
    table = manager.driver.host_manager.table
    table.update(table.rows["h3", "h3"], {"free_ram_mb": 300})
    return manager


def test_the_closest_host_of_each_reason_is_told_though_the_decision_succeeded():
    """h3 is closest, as the only one."""
    manager = decided()
    [record] = told(manager, UUID, "h3")
    [closest], [of_h3] = record["closest"], record["on_host"]
    assert (closest["filter"], closest["reason"]) == ("RamFilter", "ram.insufficient")
    assert (closest["removed"], closest["wanted"]) == (1, "2048 MiB of memory")
    assert closest["numbers_of"] == "decision"
    example = {"host": "h3", "node": "h3", "found": "512 MiB free", "missing": 1536.0}
    assert closest["examples"] == [{**example, "also_fails": None}]
    assert (of_h3["found"], of_h3["numbers_of"]) == ("512 MiB free", "decision")
    assert "512 MiB free (1536 off)" in printed(manager, UUID)


@pytest.mark.parametrize(
    ("is_replaced", "closest"), [(False, [("300 MiB free", "now")]), (True, [])]
)
def test_closest_hosts_that_have_changed_are_those_of_now(is_replaced, closest):
    """A host that took the row of another one is not mistaken for it."""
    manager = with_less(decided())
    table = manager.driver.host_manager.table
    if is_replaced:
        table._note([table.rows["h3", "h3"]], is_other=True)
    [record] = told(manager, UUID)
    found = [(each["examples"][0]["found"], each["numbers_of"]) for each in record["closest"]]
    assert found == closest


def test_numbers_of_a_host_that_has_changed_are_those_of_now():
    manager = decided()
    before = on_host(manager, "h3")
    after = on_host(with_less(manager), "h3")
    assert (before["numbers_of"], after["numbers_of"]) == ("decision", "now")
    assert (after["status"], after["as_of"]) == ("removed", "decision")
    assert "found: 300 MiB" in printed(manager, UUID, "h3")
