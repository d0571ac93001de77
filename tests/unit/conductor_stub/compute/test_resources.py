"""The sums of a compute node, and whether one more instance fits."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import pytest

from conductor_stub.compute import node_report, profiles
from scheduler import errors

KIND = profiles.HostKind("k", vcpus=8, memory_mb=8192, local_gb=100)


@dataclasses.dataclass
class Guest:
    vcpus: int | None = 1
    memory_mb: int | None = 512
    root_gb: int | None = 10
    ephemeral_gb: int | None = 0
    vm_state: str = "active"
    task_state: str | None = None
    os_type: str | None = None
    project_id: str | None = "p"
    swap: int = 4096


def test_usage_is_the_sum_of_the_instances():
    guests = [
        Guest(vcpus=2, memory_mb=1024, root_gb=20, ephemeral_gb=5),
        Guest(task_state="spawning"),
        Guest(vcpus=None, memory_mb=None, root_gb=None, ephemeral_gb=None),
    ]
    columns = node_report.usage_columns(KIND, guests, node_report.Reserved(100, 0))
    assert columns == {
        "vcpus_used": 3,
        "memory_mb_used": 1636,
        "local_gb_used": 35,
        "free_ram_mb": 8192 - 1636,
        "free_disk_gb": 65,
        "disk_available_least": 65,
        "current_workload": 1,
        "running_vms": 3,
    }


@pytest.mark.parametrize(("disk_mb", "disk_gb"), [(0, 0), (1, 1), (1024, 1), (1025, 2)])
def test_a_begun_gigabyte_of_reserved_disk_counts_whole(disk_mb, disk_gb):
    conf = types.SimpleNamespace(reserved_host_memory_mb=512, reserved_host_disk_mb=disk_mb)
    assert node_report.Reserved.from_conf(conf) == node_report.Reserved(512, disk_gb)


PRESENT = node_report.Amounts(vcpus=4, memory_mb=1000, disk_gb=50)


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        ({}, None),
        ({"memory_mb": None, "disk_gb": None, "vcpu": None}, None),
        ({"memory_mb": 1512, "disk_gb": 60, "vcpu": 5}, None),
        ({"memory_mb": 1511.0}, "512 MB of memory requested, 511 free"),
        ({"disk_gb": 59}, "10 GB of disk requested, 9 free"),
        ({"vcpu": 4}, "1 vcpus requested, 0 free"),
        ({"vcpu": 0}, "1 vcpus requested, -4 free"),
        ({"disk_gb": 59, "vcpu": 4}, "9 free; 1 vcpus"),
    ],
)
def test_only_what_has_a_limit_is_checked(limits, refusal):
    wanted = node_report.Amounts.from_instance(Guest())
    if refusal is None:
        node_report.check_limits(PRESENT, wanted, limits)
        return
    with pytest.raises(errors.ComputeResourcesUnavailable, match=refusal):
        node_report.check_limits(PRESENT, wanted, limits)


def test_stats_count_instances_as_text_but_not_a_faked_counter():
    guests: list[Any] = [
        Guest(vm_state="building", task_state="spawning"),
        Guest(task_state="image_snapshot"),
        Guest(task_state="powering-off"),
    ]
    found = node_report.stats(guests, 3, {"gpu": "volta", "num_instances": "99"})
    assert {key: value for key, value in found.items() if "None" not in key} == {
        "gpu": "volta",
        "num_instances": "3",
        "io_workload": "2",
        "failed_builds": "3",
        "num_vm_building": "1",
        "num_vm_active": "2",
        "num_task_spawning": "1",
        "num_task_image_snapshot": "1",
        "num_task_powering-off": "1",
        "num_proj_p": "3",
    }
