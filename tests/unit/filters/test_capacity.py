"""(what the host has, what is asked for) -> fits or not, and the limit."""

from __future__ import annotations

import logging
import math

import pytest

from scheduler.filters.core_filter import AggregateCoreFilter, CoreFilter
from scheduler.filters.disk_filter import AggregateDiskFilter, DiskFilter
from scheduler.filters.exact_core_filter import ExactCoreFilter
from scheduler.filters.exact_disk_filter import ExactDiskFilter
from scheduler.filters.exact_ram_filter import ExactRamFilter
from scheduler.filters.ram_filter import AggregateRamFilter, RamFilter
from tests.builders import a_conf, a_host, a_request, verdict
from tests.unit.filters.judging import judge, rows

HALVES = {"root_gb": 50, "ephemeral_gb": 50}
LITTLE = "insufficient"

RAM = rows(
    ("all of it", {}, {"memory_mb": 4096}, ""),
    ("more than there is", {"ram_allocation_ratio": 10.0}, {"memory_mb": 4097}, "physical"),
    ("exactly the overcommit left", {"free_ram_mb": -1536}, {"memory_mb": 512}, ""),
    ("one more than that", {"free_ram_mb": -1536}, {"memory_mb": 513}, LITTLE),
    ("nothing wanted", {"free_ram_mb": 0, "ram_allocation_ratio": 1.0}, {"memory_mb": 0}, ""),
    ("over", {"free_ram_mb": -1, "ram_allocation_ratio": 1.0}, {"memory_mb": 0}, LITTLE),
    ("more free than total", {"free_ram_mb": 5000}, {"memory_mb": 4096}, ""),
    ("kept back", {"ram_allocation_ratio": 0.5}, {"memory_mb": 2048}, ""),
    ("kept back, too much", {"ram_allocation_ratio": 0.5}, {"memory_mb": 2049}, LITTLE),
    ("no ratio", {"ram_allocation_ratio": 0.0}, {"memory_mb": 1}, LITTLE),
    ("ratio not a number", {"ram_allocation_ratio": math.nan}, {"memory_mb": 1}, LITTLE),
    ("not reported", {"total_usable_ram_mb": 0, "free_ram_mb": 0}, {"memory_mb": 1}, "physical"),
)
DISK = rows(
    ("all of it", {}, {"root_gb": 100}, ""),
    ("swap counts", {"disk_allocation_ratio": 10.0}, {"root_gb": 100, "swap": 1}, "physical"),
    ("exactly the overcommit", {"disk_allocation_ratio": 2.0, "free_disk_mb": 0}, HALVES, ""),
    ("one less than that", {"disk_allocation_ratio": 2.0, "free_disk_mb": -1}, HALVES, LITTLE),
    ("last one", {"free_disk_mb": 1024}, {"root_gb": 1}, ""),
    ("just too little", {"free_disk_mb": 1023}, {"root_gb": 1}, LITTLE),
    ("nothing wanted", {"free_disk_mb": 0}, {"root_gb": 0}, ""),
    ("over", {"free_disk_mb": -1}, {"root_gb": 0}, LITTLE),
    ("no ratio", {"disk_allocation_ratio": 0.0}, {}, LITTLE),
    ("ratio not a number", {"disk_allocation_ratio": math.nan}, {}, LITTLE),
    ("not reported", {"total_usable_disk_gb": 0}, {}, "physical"),
)
CORE = rows(
    ("all of them", {}, {"vcpus": 4}, ""),
    ("more than there are", {}, {"vcpus": 5}, "physical"),
    ("exactly the overcommit left", {"vcpus_used": 60}, {"vcpus": 4}, ""),
    ("one less than that", {"vcpus_used": 61}, {"vcpus": 4}, LITTLE),
    ("nothing wanted, but over", {"vcpus_used": 99}, {"vcpus": 0}, LITTLE),
    ("kept back", {"cpu_allocation_ratio": 0.5, "vcpus_used": 1}, {"vcpus": 1}, ""),
    ("no ratio", {"cpu_allocation_ratio": 0.0}, {"vcpus": 1}, LITTLE),
    ("no ratio, too many", {"cpu_allocation_ratio": 0.0}, {"vcpus": 5}, LITTLE),
    ("ratio not a number", {"cpu_allocation_ratio": math.nan}, {"vcpus": 1}, LITTLE),
    ("one", {"vcpus_total": 1, "cpu_allocation_ratio": 1.0}, {"vcpus": 2}, "physical"),
    ("not reported", {"vcpus_total": 0}, {"vcpus": 1}, ""),
    ("not reported, but used", {"vcpus_total": 0, "vcpus_used": 9}, {"vcpus": 99}, ""),
)


@pytest.mark.parametrize(("host", "flavor", "reason"), RAM)
def test_memory(host, flavor, reason):
    assert judge(RamFilter, host, {"flavor": flavor}) == (reason and f"ram.{reason}")


@pytest.mark.parametrize(("host", "flavor", "reason"), DISK)
def test_disk(host, flavor, reason):
    assert judge(DiskFilter, host, {"flavor": flavor}) == (reason and f"disk.{reason}")


def test_a_server_on_a_volume_needs_its_root_disk_too():
    request = {"flavor": {"root_gb": 101}, "is_bfv": True}
    assert judge(DiskFilter, {}, request) == "disk.physical"


@pytest.mark.parametrize(("host", "flavor", "reason"), CORE)
def test_processors(host, flavor, reason):
    assert judge(CoreFilter, host, {"flavor": flavor}) == (reason and f"core.{reason}")


@pytest.mark.parametrize(
    ("cls", "host", "flavor", "reason"),
    rows(
        ("all memory", ExactRamFilter, {}, {"memory_mb": 4096}, ""),
        ("less memory", ExactRamFilter, {}, {"memory_mb": 4095}, "exact_ram.different"),
        ("more memory", ExactRamFilter, {}, {"memory_mb": 4097}, "exact_ram.different"),
        ("no memory", ExactRamFilter, {"free_ram_mb": 0}, {"memory_mb": 0}, ""),
        ("memory left", ExactRamFilter, {"free_ram_mb": 512}, {"memory_mb": 512}, ""),
        ("root", ExactDiskFilter, {}, {"root_gb": 100}, ""),
        ("root and ephemeral", ExactDiskFilter, {}, HALVES, ""),
        ("root and swap", ExactDiskFilter, {}, {"root_gb": 99, "swap": 1024}, ""),
        ("less disk", ExactDiskFilter, {}, {"root_gb": 99}, "exact_disk.different"),
        ("more", ExactDiskFilter, {}, {"root_gb": 100, "swap": 1}, "exact_disk.different"),
        ("no disk", ExactDiskFilter, {"free_disk_mb": 0}, {"root_gb": 0}, ""),
        ("all processors", ExactCoreFilter, {}, {"vcpus": 4}, ""),
        ("fewer", ExactCoreFilter, {}, {"vcpus": 3}, "exact_core.different"),
        ("too many", ExactCoreFilter, {}, {"vcpus": 5}, "exact_core.different"),
        ("all that is left", ExactCoreFilter, {"vcpus_used": 1}, {"vcpus": 3}, ""),
        ("no processors", ExactCoreFilter, {"vcpus_used": 4}, {"vcpus": 0}, ""),
        ("not reported", ExactCoreFilter, {"vcpus_total": 0}, {"vcpus": 0}, "exact_core.unknown"),
    ),
)
def test_exactly_what_is_left(cls, host, flavor, reason):
    assert judge(cls, host, {"flavor": flavor}) == reason


@pytest.mark.parametrize(
    ("cls", "host", "limits"),
    [
        (RamFilter, {"free_ram_mb": -1536}, {"memory_mb": 6144.0}),
        (DiskFilter, {"disk_allocation_ratio": 2.0}, {"disk_gb": 200.0}),
        (CoreFilter, {}, {"vcpu": 64.0}),
        (CoreFilter, {"cpu_allocation_ratio": 0.25}, {"vcpu": 1.0}),
        (CoreFilter, {"cpu_allocation_ratio": 0.0}, {}),
        (CoreFilter, {"vcpus_total": 0}, {}),
        (ExactRamFilter, {"free_ram_mb": 512}, {"memory_mb": 4096}),
        (ExactDiskFilter, {"free_disk_mb": 512}, {"disk_gb": 100}),
        (ExactCoreFilter, {"vcpus_used": 3}, {"vcpu": 4}),
    ],
)
def test_limits(cls, host, limits):
    found = cls(a_conf()).limits(a_host(**host), a_request())

    assert found == limits
    assert [type(each) for each in found.values()] == [type(each) for each in limits.values()]


@pytest.mark.parametrize("cls", [CoreFilter, ExactCoreFilter])
def test_unknown_processors_are_logged(cls, caplog):
    with caplog.at_level(logging.WARNING):
        judge(cls, {"vcpus_total": 0})

    assert "VCPUs not set; assuming CPU collection broken" in caplog.text


RAM_OF, DISK_OF, CORE_OF = (f"{name}_allocation_ratio" for name in ("ram", "disk", "cpu"))
FULL = {"free_disk_mb": 0}


@pytest.mark.parametrize(
    ("cls", "metadata", "host", "flavor", "limits", "reason"),
    rows(
        ("own ratio", AggregateRamFilter, [], {}, 4096, 6144.0, ""),
        ("an aggregate's", AggregateRamFilter, [{RAM_OF: "0.5"}], {}, 4096, 2048.0, LITTLE),
        ("smallest", AggregateRamFilter, [{RAM_OF: "10.0"}, {RAM_OF: "9.0"}], {}, 0, 36864.0, ""),
        ("bad", AggregateRamFilter, [{RAM_OF: "0.5"}, {RAM_OF: "x"}], {}, 4096, 6144.0, ""),
        ("zero", AggregateRamFilter, [{RAM_OF: "0"}], {}, 4096, 0.0, LITTLE),
        ("another ratio", AggregateRamFilter, [{CORE_OF: "0.5"}], {}, 4096, 6144.0, ""),
        ("too big", AggregateRamFilter, [{RAM_OF: "10"}], {}, 4097, 40960.0, "physical"),
        ("own disk", AggregateDiskFilter, [], FULL, 100, 100.0, LITTLE),
        ("disk", AggregateDiskFilter, [{DISK_OF: "2"}], FULL, 100, 200.0, ""),
        ("smallest disk", AggregateDiskFilter, [{DISK_OF: "2"}, {DISK_OF: "1.1"}], FULL, 100,
         110.00000000000001, LITTLE),
        ("disk too big", AggregateDiskFilter, [{DISK_OF: "10"}], {}, 101, 1000.0, "physical"),
        ("own cores", AggregateCoreFilter, [], {"vcpus_used": 4}, 2, 64.0, ""),
        ("cores", AggregateCoreFilter, [{CORE_OF: "1.0"}], {"vcpus_used": 4}, 2, 4.0, LITTLE),
        ("smallest cores", AggregateCoreFilter, [{CORE_OF: "2"}, {CORE_OF: "1.5"}],
         {"vcpus_used": 4}, 2, 6.0, ""),
        ("no cores, no limit", AggregateCoreFilter, [{CORE_OF: "0"}], {}, 2, None, LITTLE),
        ("no number", AggregateCoreFilter, [{CORE_OF: ""}], {"vcpus_used": 4}, 2, 64.0, ""),
        ("too many", AggregateCoreFilter, [{CORE_OF: "10"}], {}, 5, 40.0, "physical"),
    ),
)  # fmt: skip
def test_aggregates_set_the_ratio(cls, metadata, host, flavor, limits, reason):
    """They do not lift the physical size."""
    name, part, limit = {
        AggregateRamFilter: ("ram", "memory_mb", "memory_mb"),
        AggregateDiskFilter: ("disk", "root_gb", "disk_gb"),
        AggregateCoreFilter: ("core", "vcpus", "vcpu"),
    }[cls]
    state, request = a_host(aggregates=metadata, **host), a_request(flavor={part: flavor})

    found = verdict(cls(a_conf()), state, request)

    assert found == ([f"aggregate_{name}.{reason}"] if reason else [])
    assert cls(a_conf()).limits(state, request) == ({} if limits is None else {limit: limits})
