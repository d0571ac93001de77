"""Parts of a request for hypothesis: names that mean something, with values of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.fuzz import targets

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


def named(names: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Dicts in which most keys are of *names*."""
    return st.dictionaries(st.sampled_from(names) | st.text(max_size=9), values, max_size=4)


hints = named(
    ["query", "group", "same_host", "different_host", "build_near_host_ip", "cidr"], anything
)
extra_specs = named(
    ["hw:numa_nodes", "hw:cpu_policy", "hw:mem_page_size", "hw:numa_cpus.0", "hw:numa_mem.0"]
    + ["capabilities:cpu_info:vendor", "hw:cpu_threads", "resources:VCPU", "pci_passthrough:alias"],
    st.sampled_from([">= 5", "<in> x", "s== a", "<or> 1 <or> 2", "0-3,^2", "large", "1.5"])
    | anything,
)
image_properties = named(
    ["hw_architecture", "img_hv_type", "hw_vm_mode", "img_hv_requested_version", "hw_numa_nodes"]
    + ["hw_numa_cpus", "hw_numa_mem", "hw_cpu_policy", "hw_mem_page_size"],
    anything,
)
PARTS: dict[str, tuple[st.SearchStrategy[Any], Callable[[dict[str, Any], Any], None]]] = {
    "hints": (hints, targets.hints),
    "extra specs": (extra_specs, targets.extra_specs),
    "image properties": (image_properties, targets.image_properties),
}
