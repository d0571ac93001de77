"""Recorded placements, decided by the pure NUMA and PCI parts alone."""

from __future__ import annotations

import gzip
import json
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from scheduler import numa, objects, pci
from scheduler.numa import NumaSemantics

FOLDER = pathlib.Path(__file__).parents[2] / "data" / "vectors"
SEMANTICS = {"newton": numa.NEWTON, "2026": numa.CURRENT}
#: Ratios of rows that hold none.
RATIOS = {"newton": (16.0, 1.5), "2026": (4.0, 1.0)}


def load(suite: str) -> Iterator[dict[str, Any]]:
    """The cases of a suite."""
    with gzip.open(FOLDER / f"{suite}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@dataclass
class Host:
    """One compute node's row as far as cells and devices go."""

    key: str
    topology: numa.HostTopology | None
    pools: pci.Pools
    ratios: tuple[float, float]
    limits: numa.Limits | None = None
    errors: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, row: dict[str, Any], semantics: str) -> Host:
        cpu, ram = RATIOS[semantics]
        return cls(
            key=f"{row['host']}/{row['hypervisor_hostname']}",
            topology=numa.HostTopology.from_text(row["numa_topology"]),
            pools=pci.Pools.from_text(row["pci_stats"]),
            ratios=(row["cpu_allocation_ratio"] or cpu, row["ram_allocation_ratio"] or ram),
        )


class Decision:
    """One case under one kind of semantics."""

    def __init__(self, case: dict[str, Any], semantics: str) -> None:
        self.semantics: NumaSemantics = SEMANTICS[semantics]
        config = case["config"]
        self.filters = config["filter_scheduler"]["enabled_filters"]
        self.pack = config.get("compute", {}).get(
            "packing_host_numa_cells_allocation_strategy", False
        )
        spec = objects.from_primitive(case["request"])
        self.guest = spec.numa_topology and numa.GuestTopology.from_object(spec.numa_topology)
        self.requests = pci.requests_of(spec.pci_requests)
        self.networks = None
        if spec.is_set("network_metadata"):
            self.networks = numa.Networks.from_object(spec.network_metadata)
        self.spec = spec
        rows = case["fleet"]["compute_nodes"]
        self.hosts = {host.key: host for host in (Host.of(row, semantics) for row in rows)}

    def passed(self) -> list[dict[str, Any]]:
        """The chain of filters for the next instance, in the form of the file."""
        left, chain = sorted(self.hosts), []
        for name in self.filters:
            judge = self.has_cells if name == "NUMATopologyFilter" else self.has_devices
            left = [key for key in left if judge(self.hosts[key])]
            chain.append({"name": name, "passed": [key.split("/") for key in left]})
            if not left:
                break
        return chain

    def has_devices(self, host: Host) -> bool:
        return pci.supports(host.pools, self.requests, None, self.semantics.pci)

    def has_cells(self, host: Host) -> bool:
        wanted = numa.requires_threads(self.spec.flavor, self.spec.image)
        if wanted and numa.lacks_threads(host.topology, self.semantics):
            return False
        if not self.guest or not host.topology:
            return not self.guest
        limits = numa.Limits(*host.ratios, self.networks)
        if self.fit(host, limits) is None:
            return False
        host.limits = limits
        return True

    def fit(self, host: Host, limits: numa.Limits) -> numa.GuestTopology | None:
        assert host.topology is not None
        assert self.guest is not None
        return numa.fit(
            host.topology,
            self.guest,
            limits,
            self.requests,
            host.pools,
            self.semantics,
            pack=self.pack,
        )

    def place(self, key: str) -> numa.Placement:
        """Consume the next instance on the host."""
        host = self.hosts[key]
        placement = numa.place(
            host.topology,
            self.guest,
            host.limits,
            self.requests,
            host.pools,
            self.semantics,
            pack=self.pack,
        )
        self.guest = placement.guest
        host.topology = placement.host
        host.pools = placement.pools or pci.Pools()
        return placement
