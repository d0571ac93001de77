"""(options) -> the weighers that run."""

import pytest

from scheduler import errors
from scheduler.weights import registry
from tests.builders import a_conf

NEWTONS = {
    "Disk",
    "IoOps",
    "Metrics",
    "RAM",
    "ServerGroupSoftAffinity",
    "ServerGroupSoftAntiAffinity",
}
NEWER = {"BuildFailure", "CPU", "CrossCell", "HypervisorVersion", "ImageProperties"}
NEWER |= {"NumInstances", "PCI"}
CPU = "nova.scheduler.weights.cpu.CPUWeigher"


def loaded(semantics="current", **options):
    conf = a_conf(**options, scheduler__semantics=semantics)
    return [each.name.removesuffix("Weigher") for each in registry.load_weighers(conf)]


def test_what_runs():
    assert set(loaded()) == NEWTONS | NEWER
    for path in registry.ALL_WEIGHERS:
        assert set(loaded("newton", weight_classes=[path])) == NEWTONS
    assert loaded("newton", weight_classes=[CPU]) == ["CPU"], "a newer one that is named"
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
