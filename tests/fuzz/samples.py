"""What is mutated: the recorded messages, the objects in them, documents of hosts, files."""

import gzip
import itertools
import json
import pathlib
from collections.abc import Iterator
from typing import Any

from tests.fuzz.mutations import parts

WIRE = pathlib.Path(__file__).parents[1] / "data" / "wire"
HERE = "baseapi-", "fanout-", "select_destinations", "derived-"
NOT_HERE = "compute-", "conductor-", "build_"
"""In the names of messages that others than the scheduler get."""
DATA = "nova_object.data"


def _is_ours(name: str, message: Any) -> bool:
    if not isinstance(message, dict) or "method" not in message:
        return False
    return name.startswith(HERE) and not any(each in name for each in NOT_HERE)


def messages() -> dict[str, dict[str, Any]]:
    """Every recorded message to the scheduler, by the name of its file."""
    found = {}
    for path in sorted(WIRE.glob("*.json")):
        message = json.loads(path.read_text(encoding="utf-8")).get("message")
        if _is_ours(path.name, message):
            found[path.name.removesuffix(".json")] = message
    return {**found, **introspection()}


def introspection() -> dict[str, dict[str, Any]]:
    """Questions to one worker, which are not recorded anywhere."""
    asked: dict[str, dict[str, Any]] = {
        "worker": {},
        "explain": {"name": "f4a0f8c0-0000-4000-8000-000000000001", "on_host": "cmp1"},
        "state_summary": {},
        "state_refresh": {},
    }
    common = {"namespace": "introspection", "version": "1.0"}
    return {f"ask-{name}": {"method": name, "args": args, **common} for name, args in asked.items()}


def what_if() -> dict[str, Any]:
    """A request to be tried out with every kind of change."""
    simple = json.loads((WIRE / "select_destinations-simple.request.json").read_text("utf-8"))
    profile = {
        "like": "cmp1", "count": 2, "name": "new", "aggregates": ["az-east"], "vcpus": 8,
        "memory_mb": 4096, "cpu_allocation_ratio": 4.0,
    }  # fmt: skip
    args = {
        "request": simple["message"]["args"]["spec_obj"],
        "enable": [], "disable": ["RamFilter"], "settings": ["ram_weight_multiplier=-1"],
        "add_hosts": [profile, {"like": "cmp2", "local_gb": 1}],
        "without_hosts": ["cmp2"], "max_seconds": 5,
    }  # fmt: skip
    return {"method": "what_if", "args": args, "namespace": "introspection", "version": "1.0"}


def envelopes() -> Iterator[dict[str, Any]]:
    """The object in a recorded message of any service, of each class and shape."""
    seen = set()
    for path in sorted(WIRE.glob("*.json")):
        for _where, part in parts(json.loads(path.read_text(encoding="utf-8"))):
            if isinstance(part, dict) and isinstance(part.get(DATA), dict):
                shape = (part.get("nova_object.name"), *sorted(part[DATA]))
                if shape not in seen:
                    seen.add(shape)
                    yield part


def bodies() -> Iterator[bytes]:
    """The recorded messages as they are on the bus."""
    for message in messages().values():
        yield json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(message)}).encode()


QUERIES = (
    '["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 204800]]',
    '["or", ["<", "$vcpus_used", 3], ["in", "$host", "cmp1", "cmp2"], ["not", ["=", 1, 2]]]',
    '["=", "$service.host", "cmp1"]',
    '["<=", "$host_ip", "10.0.0.1"]',
    '["not", ["in", "$aggregates", 1], ["=", "$limits.memory_mb", null]]',
    '[]', '"and"', '["and", ["and", ["and", ["or", []]]]]',
    '["=", "$stats", {}]', '["<", "$cpu_info", "$metrics", "$pci_stats", "$numa_topology"]',
)  # fmt: skip

HINTS: tuple[dict[str, Any], ...] = (
    {"query": ['[">=", "$free_ram_mb", 1024]'], "group": ["g1"], "same_host": ["u1", "u2"]},
    {"different_host": ["u1"], "build_near_host_ip": ["10.0.0.1"], "cidr": ["/24"]},
)
EXTRA_SPECS: tuple[dict[str, Any], ...] = (
    {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-3,^2", "hw:numa_cpus.1": "2", "hw:numa_mem.0": "9"},
    {"hw:cpu_policy": "dedicated", "hw:cpu_threads": "2", "hw:mem_page_size": "large"},
    {"capabilities:cpu_info:vendor": "<or> Intel <or> AMD", "capabilities:vcpus": ">= 5"},
    {"resources:VCPU": "1", "pci_passthrough:alias": "a1:2", "trait:x": "required", "k": "<in> v"},
)
IMAGE_PROPERTIES: tuple[dict[str, Any], ...] = (
    {"hw_architecture": "x86_64", "img_hv_type": "kvm", "hw_vm_mode": "hvm"},
    {"img_hv_requested_version": ">=2.5,<3", "hw_cpu_policy": "shared", "hw_mem_page_size": "4"},
    {"hw_numa_nodes": 2, "hw_numa_cpus": {"0": "0-1", "1": "2"}, "hw_numa_mem": {"0": 1, "1": 2}},
)
PLACES: tuple[dict[str, Any], ...] = (
    {"cpu_info": '{"vendor": "Intel", "features": ["vmx"], "topology": {"cores": 4}}'},
    {"stats": '{"num_instances": "3", "io_workload": "1", "failed_builds": "0"}'},
    {"supported_instances": '[["x86_64", "kvm", "hvm"], ["i686", "kvm", "hvm"]]'},
    {"metrics": '[{"name": "cpu.percent", "value": 5, "source": "x", "timestamp": "2026-01-01"}]'},
    {"vcpus": 4, "memory_mb": 4096, "local_gb": 100, "disk_available_least": 50,
     "free_disk_gb": 60, "free_ram_mb": 1000, "cpu_allocation_ratio": 16.0,
     "hypervisor_version": 2012000, "hypervisor_type": "QEMU", "host_ip": "10.0.0.1"},
)  # fmt: skip
"""Columns of ``compute_nodes`` with documents and numbers."""


def places() -> Iterator[dict[str, Any]]:
    """Columns of ``compute_nodes``, with the topologies and devices of recorded fleets."""
    yield from PLACES
    for name, column in (("numa_2026", "numa_topology"), ("pci_2026", "pci_stats")):
        path = WIRE.parent / "vectors" / f"{name}.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [row for line in itertools.islice(lines, 12) for row in _rows(line)]
        distinct = dict.fromkeys(row[column] for row in rows if row[column])
        yield from ({column: text} for text in itertools.islice(distinct, 8))


def _rows(line: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(line)["fleet"]["compute_nodes"]
    return found


def files() -> Iterator[bytes]:
    """Configuration files: short ones, and one with spellings of older releases."""
    yield b"[DEFAULT]\nhost = a\nservice_down_time = 60\nreport_interval = 10\ndebug = true\n"
    yield (
        b"[scheduler]\ndriver = filter_scheduler\nmax_attempts = 3\nworkers = 2\nclaims = none\n"
        b"[filter_scheduler]\nhost_subset_size = 2\nenabled_filters = RamFilter,DiskFilter\n"
        b"available_filters = nova.scheduler.filters.all_filters\nram_weight_multiplier = -1.5\n"
    )
    yield (
        b"[DEFAULT]\nscheduler_default_filters=RamFilter\nscheduler_max_attempts=1\n"
        b"ram_allocation_ratio=1.5\nscheduler_driver_task_period=5\nsql_connection=sqlite://\n"
        b'[metrics]\nweight_setting = a=1.0, b=-1\n[pci]\nalias = {"name": "a"}\n'
    )
    yield b"[DEFAULT]\ndefault_log_levels = a=INFO,b=DEBUG\nlogging_context_format_string = %(x)s\n"
