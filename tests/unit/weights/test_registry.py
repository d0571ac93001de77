"""(options) -> the weighers that run."""

from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.weights import registry
from tests.builders import a_conf

NEWTONS = {
    "DiskWeigher",
    "IoOpsWeigher",
    "MetricsWeigher",
    "RAMWeigher",
    "ServerGroupSoftAffinityWeigher",
    "ServerGroupSoftAntiAffinityWeigher",
}
NEWER = {
    "BuildFailureWeigher",
    "CPUWeigher",
    "CrossCellWeigher",
    "HypervisorVersionWeigher",
    "ImagePropertiesWeigher",
    "NumInstancesWeigher",
    "PCIWeigher",
}
CPU = "nova.scheduler.weights.cpu.CPUWeigher"


def loaded(semantics="current", **options):
    conf = a_conf(**options)
    conf.set_override("semantics", semantics, group="scheduler")
    return [each.name for each in registry.load_weighers(conf)]


def test_all_of_today():
    assert set(loaded()) == NEWTONS | NEWER


@pytest.mark.parametrize("path", registry.ALL_WEIGHERS)
def test_all_of_newton(path):
    assert set(loaded("newton", weight_classes=[path])) == NEWTONS


def test_a_newer_one_runs_under_newton_when_it_is_named():
    assert loaded("newton", weight_classes=[CPU]) == ["CPUWeigher"]


def test_none_at_all():
    assert loaded(weight_classes=[]) == []


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("nova.scheduler.weights.nope.Nope", errors.ConfigurationError),
        ("RAMWeigher", errors.ConfigurationError),
        ("nova.scheduler.weights.ram.Nope", errors.ConfigurationError),
        ("scheduler.filters.ram_filter.RamFilter", errors.ClassNotFound),
    ],
)
def test_paths_that_lead_to_no_weigher(path, error):
    with pytest.raises(error, match="weight_classes"):
        loaded(weight_classes=[path])
