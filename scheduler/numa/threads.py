"""Hosts without sibling threads, and requests that cannot do without (section 8.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler import objects
from scheduler.numa.host import HostTopology

if TYPE_CHECKING:
    from scheduler.numa.semantics import NumaSemantics


def siblings_listed(host: HostTopology) -> bool:
    """Newton: some cell lists sibling sets, of whatever size."""
    return any(cell.siblings for cell in host.cells)


def siblings_exist(host: HostTopology) -> bool:
    """Today: some core has more than one thread."""
    return any(cell.threads_per_core > 1 for cell in host.cells)


def requires_threads(flavor: objects.Flavor | None, image: objects.ImageMeta | None) -> bool:
    """Whether flavor or image ask for pinned CPUs that are siblings.

    Asked even of requests without a topology of their own.
    """
    specs = {} if flavor is None else flavor.extra_specs or {}
    properties = objects.ImageMetaProps() if image is None else image.properties
    policies = (specs.get("hw:cpu_policy"), properties.hw_cpu_policy)
    threads = (specs.get("hw:cpu_thread_policy"), properties.hw_cpu_thread_policy)
    return "dedicated" in policies and "require" in threads


def lacks_threads(host: HostTopology | None, semantics: NumaSemantics) -> bool:
    """Whether *host* has cells, but no siblings."""
    return host is not None and len(host) > 0 and not semantics.has_siblings(host)
