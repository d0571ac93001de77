"""``[DEFAULT]``: identity, liveness, periodic tasks, zones, ratios, topics; ``[upgrade_levels]``.

``[compute]``, ``[conductor]``, ``[pci]``: the options of the conductor and compute stubs.
Reference pages config, sections 2, 5 and 6.1, and numa_pci, section 10.4.
"""

import pathlib
import socket
import sys

from oslo_config import cfg
from oslo_utils import netutils

from scheduler import concurrency

PACKAGED_STATE_PATH = "/var/lib/nova"


def _ratios(resource: str, initial: float) -> list[cfg.Opt]:
    return [
        cfg.FloatOpt(
            f"{resource}_allocation_ratio",
            min=0.0,
            help=f"How often the physical {resource} of a host may be handed out, for hosts whose "
            "row of the compute_nodes table has no ratio of its own (NULL or 0.0). Unset or 0.0: "
            f"initial_{resource}_allocation_ratio applies.",
        ),
        cfg.FloatOpt(
            f"initial_{resource}_allocation_ratio",
            default=initial,
            min=0.0,
            help=f"The {resource} ratio of hosts for which neither their row nor "
            f"{resource}_allocation_ratio has one.",
        ),
    ]


OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "host",
        default=socket.gethostname(),
        sample_default="<name of this machine>",
        help="Name of this service: the server name on the message bus (queue `scheduler.<host>`) "
        "and the `host` of its row in the services table. Any non-empty text; it need not be a DNS "
        "name. Two daemons must not share one name unless they are workers of the same service.",
    ),
    cfg.StrOpt(
        "my_ip",
        default=netutils.get_my_ipv4(),
        sample_default="<first IPv4 address of this machine>",
        help="IP address of this machine, written to `compute_nodes.host_ip` by the compute "
        "stub and available to other options as `$my_ip`.",
    ),
    cfg.StrOpt(
        "state_path",
        default=PACKAGED_STATE_PATH,
        sample_default="/var/lib/nova if that is writable, else ~/.local/share/nova-scheduler",
        help="Directory for state kept on this machine; the default SQLite database lives "
        "here. Available to other options as `$state_path`.",
    ),
    cfg.StrOpt(
        "my_block_storage_ip",
        default="$my_ip",
        help="Available to other options as `$my_block_storage_ip`.",
    ),
    cfg.StrOpt(
        "pybasedir",
        default=str(pathlib.Path(__file__).parents[2]),
        sample_default="<where this is installed>",
        help="Available to other options as `$pybasedir`.",
    ),
    cfg.StrOpt(
        "bindir",
        default=str(pathlib.Path(sys.prefix) / "bin"),
        sample_default="<where the programs are installed>",
        help="Available to other options as `$bindir`.",
    ),
    cfg.StrOpt(
        "tempdir",
        help="Directory for temporary files; it must be writable. Unset: that of the system.",
    ),
    cfg.StrOpt(
        "concurrency_backend",
        default="auto",
        choices=[
            ("auto", "eventlet"),
            ("eventlet", "green threads on a patched standard library"),
            ("threading", "native threads"),
        ],
        help="How requests run side by side. The environment variable "
        f"{concurrency.ENVIRONMENT_VARIABLE} (1, true or yes: threading; any other text: "
        "eventlet) beats this option. It is read before anything else and only from the "
        "files named on the command line or from the environment.",
    ),
    cfg.StrOpt(
        "scheduler_json_config_location",
        default="",
        help="Path of a JSON file with options for filters and weighers of your own, which "
        "find what it says in `spec_obj.config_options`. It may be edited at any time and is "
        "read again within five minutes. Empty: no such file.",
    ),
    cfg.IntOpt(
        "report_interval",
        default=10,
        help="Seconds between two heartbeats of a service in its row of the services table. "
        "0 switches the heartbeat off.",
    ),
    cfg.IntOpt(
        "service_down_time",
        default=60,
        help="Seconds after its last heartbeat from which on a service counts as down. Must "
        "be greater than report_interval; otherwise 2.5 times report_interval is used.",
    ),
    cfg.StrOpt(
        "servicegroup_driver",
        default="db",
        choices=[("db", "heartbeats in the services table")],
        help="Where the liveness of services is kept.",
    ),
    cfg.BoolOpt(
        "enable_new_services",
        default=True,
        help="Whether a service that registers for the first time is enabled. When false its "
        "row is created disabled, with a reason that names this option.",
    ),
    cfg.BoolOpt("periodic_enable", default=True, help="Whether periodic tasks run at all."),
    cfg.IntOpt(
        "periodic_fuzzy_delay",
        default=60,
        help="The first run of the periodic tasks is delayed by a random number of seconds up to "
        "this one, so that daemons started together do not run in step. 0 or less: no delay.",
    ),
    cfg.StrOpt(
        "default_availability_zone",
        default="nova",
        help="Availability zone of every compute host that is in no aggregate with "
        "`availability_zone` metadata.",
    ),
    cfg.StrOpt(
        "internal_service_availability_zone",
        default="internal",
        help="Availability zone shown for services that are not compute services.",
    ),
    cfg.StrOpt(
        "default_schedule_zone",
        help="Availability zone of a server booted without one. Unset: any zone will do.",
    ),
    *_ratios("cpu", 4.0),
    *_ratios("ram", 1.0),
    *_ratios("disk", 1.0),
    cfg.StrOpt(
        "scheduler_topic",
        default="scheduler",
        help="Topic of the schedulers, and so the name of their queues, for deployments that "
        "changed it before Pike. All callers must use the same.",
    ),
    cfg.StrOpt(
        "compute_topic",
        default="compute",
        help="Topic of the compute hosts for drivers that send builds to them, as Nova's drivers "
        "did until Icehouse. The conductor always uses `compute`.",
    ),
    cfg.IntOpt(
        "long_rpc_timeout",
        default=1800,
        min=0,
        help="Seconds a caller waits for the answer to a call that may take long, such as "
        "select_destinations, as long as the other side shows every rpc_response_timeout "
        "seconds that it is alive.",
    ),
]

UPGRADE_LEVELS = cfg.OptGroup(
    "upgrade_levels",
    title="Upgrade levels",
    help="Caps on the RPC versions sent, for deployments in the middle of an upgrade.",
)


def _cap(service: str) -> cfg.Opt:
    return cfg.StrOpt(
        service,
        help=f"Newest version of the {service} RPC interface that may be sent: a version such as "
        "4.4, or the name of a release such as newton. Unset: the newest known.",
    )


UPGRADE_LEVELS_OPTIONS = [_cap("scheduler"), _cap("conductor"), _cap("compute"), _cap("baseapi")]

COMPUTE = cfg.OptGroup("compute", title="Compute", help="How servers are laid out on their host.")


def _reserved(name: str, default: int, what: str) -> cfg.Opt:
    return cfg.IntOpt(
        name,
        default=default,
        help=f"{what} of each host kept for the host itself; reported as used. Less than 0 counts "
        "as 0.",
    )


STUBS_OPTIONS: list[cfg.Opt] = [
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
    )
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
    )
]

CONDUCTOR = cfg.OptGroup("conductor", title="Conductor", help="The conductor stub.")

CONDUCTOR_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "workers",
        default=1,
        min=0,
        help="Number of worker processes of the conductor stub. 0: one per CPU.",
    )
]
