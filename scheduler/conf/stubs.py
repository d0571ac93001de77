"""``[compute]``, ``[conductor]``, ``[pci]``: what the conductor and compute stubs read.

Reference page config, sections 2, 5.2 and 5.3; page numa_pci, section 10.4.
"""

from __future__ import annotations

from oslo_config import cfg

COMPUTE = cfg.OptGroup("compute", title="Compute", help="How servers are laid out on their host.")


def _reserved(name: str, default: int, what: str) -> cfg.Opt:
    return cfg.IntOpt(
        name,
        default=default,
        help=f"{what} of each host kept for the host itself; reported as used. Less than 0 counts "
        "as 0.",
    )


DEFAULT_OPTIONS: list[cfg.Opt] = [
    _reserved("reserved_host_memory_mb", 512, "Memory in MB"),
    _reserved("reserved_host_disk_mb", 0, "Disk space in MB"),
    cfg.IntOpt(
        "update_resources_interval",
        default=0,
        help="Seconds between two reports of a host's resources to the compute_nodes table. 0 "
        "means 60, a negative value switches the periodic report off.",
    ),
    cfg.IntOpt(
        "scheduler_instance_sync_interval",
        default=120,
        help="Seconds between two messages with which a compute host sends the schedulers the list "
        "of its instances. 0 means 60, a negative value switches them off.",
    ),
    cfg.IntOpt(
        "max_concurrent_builds",
        default=10,
        min=0,
        help="How many servers one compute host builds at the same time. 0: no limit.",
    ),
]

COMPUTE_OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "packing_host_numa_cells_allocation_strategy",
        default=False,
        help="Where a server has fewer NUMA cells than its host: whether the host's fullest cells "
        "are tried first, instead of its emptiest. Without effect under `[scheduler] semantics = "
        "newton`, which tries them as the host lists them.",
    ),
]

PCI = cfg.OptGroup("pci", title="PCI devices", help="Devices that are passed through to servers.")

PCI_OPTIONS: list[cfg.Opt] = [
    cfg.MultiStrOpt(
        "alias",
        default=[],
        deprecated_opts=[cfg.DeprecatedOpt("pci_alias", group="DEFAULT")],
        help="What a name in the extra spec `pci_passthrough:alias` of a flavor stands for: a JSON "
        "object with `name` and any of `vendor_id`, `product_id`, `device_type` (type-PCI, "
        "type-PF, type-VF, vdpa) and `numa_policy` (required, legacy, preferred, socket). The same "
        "name again is an alternative. Read by `nova-conductor-stub boot`.",
    ),
]

CONDUCTOR = cfg.OptGroup("conductor", title="Conductor", help="The conductor stub.")

CONDUCTOR_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "workers",
        default=1,
        min=0,
        help="Number of worker processes of the conductor stub. 0: one per CPU.",
    ),
]
