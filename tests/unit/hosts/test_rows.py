"""From rows to values: what NULL, 0 and odd values mean."""

import datetime

import pytest

from scheduler.hosts import columns, rows
from scheduler.hosts.columns import NEVER
from scheduler.replay.row_fleet import RowFleet, moment
from scheduler.semantics import Ratios
from tests.builders import a_conf
from tests.unit.evaluation.builders import NOW, a_node

HUGE = 2**31 - 1
RATIOS = Ratios(cpu=16.0, ram=1.5, disk=1.0)


def read(*, knows_bare_metal=False, **columns):
    [changes] = RowFleet({"compute_nodes": [a_node("h1", **columns)]}).read(moment(NOW))
    complaints = rows.Complaints()
    found = rows.values(
        *(changes.nodes[0], RATIOS, "c1"), knows_bare_metal=knows_bare_metal, complaints=complaints
    )
    complaints.log()
    return found


@pytest.mark.parametrize(
    ("text", "expected", "complaints"),
    [
        ('{"num_instances": "3", "io_workload": "2", "failed_builds": "1"}', [3, 2, 1], 0),
        ('{"num_instances": 3}', [3, 0, 0], 0),
        ('{"num_instances": "2.0", "io_workload": "2"}', [0, 2, 0], 1),
        ('{"num_instances": Infinity, "io_workload": 1e999, "failed_builds": 5}', [0, 0, 5], 2),
        (f'{{"num_instances": {10**30}, "io_workload": {-(10**30)}}}', [HUGE, -HUGE, 0], 0),
        ("[" * 100_000, [0, 0, 0], 0),
        ('{"a":' * 500 + "1" + "}" * 500, [0, 0, 0], 0),
        ('{"num_instances": null}', [0, 0, 0], 1),
        ("{}", [0, 0, 0], 0),
        ("[]", [0, 0, 0], 0),
        ("{", [0, 0, 0], 0),
        ("", [0, 0, 0], 0),
        (None, [0, 0, 0], 0),
    ],
)
def test_counts(text, expected, complaints, caplog):
    found = read(stats=text)
    counts = [found[name] for name in ("num_instances", "num_io_ops", "failed_builds")]
    assert counts == expected
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == complaints


@pytest.mark.parametrize(("ratio", "expected"), [(None, 1.5), (0.0, 1.5), (0.9, 0.9), (2.0, 2.0)])
def test_ratios(ratio, expected):
    assert read(ram_allocation_ratio=ratio)["ram_allocation_ratio"] == expected


def test_a_row_never_filled_in_says_nothing_but_who_it_is():
    found = read(free_disk_gb=None, free_ram_mb=4096)
    identity = {"node_id", "uuid", "cell_uuid", "updated_at", "reported", "bare_metal"}
    assert (found.keys(), found["reported"]) == (identity, False)


@pytest.mark.parametrize(
    ("semantics", "options", "expected"),
    [
        ("current", {}, (4.0, 1.0, 1.0)),
        ("current", {"cpu_allocation_ratio": 2.0, "ram_allocation_ratio": 0.0}, (2.0, 1.0, 1.0)),
        ("current", {"disk_allocation_ratio": 3.0}, (4.0, 1.0, 3.0)),
        ("newton", {"cpu_allocation_ratio": 0.0}, (16.0, 1.5, 1.0)),
        ("newton", {"ram_allocation_ratio": 2.5}, (16.0, 2.5, 1.0)),
        ("newton", {"initial_cpu_allocation_ratio": 3.0}, (16.0, 1.5, 1.0)),
    ],
)
def test_ratios_for_hosts_that_have_none(semantics, options, expected):
    of_default = {f"DEFAULT__{name}": value for name, value in options.items()}
    found = Ratios.from_conf(a_conf(scheduler__semantics=semantics, **of_default))
    assert (found.cpu, found.ram, found.disk) == expected


EPOCH = datetime.datetime(1970, 1, 1)
EAST = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("when", "seconds"),
    [
        (None, NEVER),
        ("0000-00-00 00:00:00", NEVER),
        (EPOCH + datetime.timedelta(seconds=5, microseconds=500_000), 5.5),
        (datetime.datetime(1970, 1, 1, 2, 0, 7, tzinfo=EAST), 7.0),
        (EPOCH - datetime.timedelta(seconds=1), -1.0),
    ],
)
def test_times(when, seconds):
    assert columns.seconds(when) == seconds
