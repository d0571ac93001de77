"""The weighers that ship here: the visible list, and loading of the configured ones."""

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler import plugins, semantics
from scheduler.weights.base import BaseHostWeigher

#: Modules of the weighers, here and in Nova.
MODULES = (
    *("ram", "disk", "io_ops", "affinity", "metrics", "cpu", "compute", "pci", "cross_cell"),
    *("hypervisor_version", "num_instances", "image_props"),
)
#: Names for "all weighers".
ALL_WEIGHERS = ("nova.scheduler.weights.all_weighers", "scheduler.weights.all_weighers")
NAMESPACE = "nova.scheduler.weights"
OPTION = "[filter_scheduler] weight_classes"


def all_weighers() -> list[type[BaseHostWeigher]]:
    """Every weigher class that ships here, in the order their weights are added."""
    return list(plugins.shipped("scheduler.weights", MODULES, BaseHostWeigher).values())


def load_weighers(conf: Any) -> list[BaseHostWeigher]:
    """Instances of the ``weight_classes``, in order.

    Which classes "all weighers" are is up to the semantics; one that is named always runs.
    Raises ConfigurationError or ClassNotFound for an entry that does not load.
    """
    newer = semantics.from_conf(conf).newer_weighers
    of_the_release = [each for each in all_weighers() if each.__name__ not in newer]
    known = plugins.shipped("scheduler.weights", MODULES, BaseHostWeigher)
    known |= dict.fromkeys(ALL_WEIGHERS, lambda: of_the_release)
    return [
        plugins.instantiate(cls, conf)
        for path in conf.filter_scheduler.weight_classes
        if path
        for cls in _classes(path, known, conf.filter_scheduler.extensions_directory)
    ]


def _classes(path: str, known: Mapping[str, Any], directory: str) -> Iterable[type]:
    """Classes of one entry: a dotted path, an entry point, or a class of a file in *directory*."""
    if "." not in path:
        found = plugins.named_class(NAMESPACE, directory, path, BaseHostWeigher, OPTION)
        if found is not None:
            return [found]
    return plugins.classes_at(path, BaseHostWeigher, known, OPTION)
