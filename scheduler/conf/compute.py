"""``[DEFAULT]`` options of the compute stub, and ``[compute]``.

Reference page config, sections 2 and 5.2; page numa_pci, section 10.4.
"""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup("compute", title="Compute", help="How servers are laid out on their host.")


def _reserved(name: str, default: int, what: str) -> cfg.Opt:
    return cfg.IntOpt(
        name,
        default=default,
        help=f"{what} of each host kept for the host itself; reported as used. Less than 0 counts "
        "as 0.",
    )


OPTIONS: list[cfg.Opt] = [
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
        help="Seconds between two messages in which a compute host tells the schedulers the list "
        "of its instances. 0 means 60, a negative value switches them off.",
    ),
    cfg.IntOpt(
        "max_concurrent_builds",
        default=10,
        min=0,
        help="How many servers one compute host builds at the same time. 0: no limit.",
    ),
]

GROUP_OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "packing_host_numa_cells_allocation_strategy",
        default=False,
        help="Where a server has fewer NUMA cells than its host: whether the host's fullest cells "
        "are tried first, instead of its emptiest. Without effect under `[scheduler] semantics = "
        "newton`, which tries them as the host lists them.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options on *conf*."""
    conf.register_opts(OPTIONS)
    registration.register_group(conf, GROUP, GROUP_OPTIONS)


def list_opts() -> list[tuple[str | cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the sample file."""
    return [("DEFAULT", OPTIONS), (GROUP, GROUP_OPTIONS)]
