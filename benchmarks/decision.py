"""One decision in process: the column engine against the same chain run row by row.

    python -m benchmarks.decision --hosts 1000 --rounds 5

Prints milliseconds per decision of both (median of the rounds, interleaved) and their ratio.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
import uuid

from oslo_config import cfg

from scheduler import conf as scheduler_conf
from scheduler import objects
from scheduler.drivers.pipeline import Decision, Policy
from scheduler.explain.record import DecisionRecord
from scheduler.filters.base import BaseHostFilter
from scheduler.filters.chain import FilterChain
from scheduler.filters.registry import load_chain
from scheduler.hosts.books import Books
from scheduler.hosts.table import HostTable
from scheduler.weights.registry import load_weighers

NOW = 1_000_000.0
SIZES = ((16, 32768, 500), (32, 131072, 2000), (64, 262144, 4000))


class RowByRow(BaseHostFilter):
    """The same filter, asked host by host as a third-party filter is."""

    def __init__(self, inner: BaseHostFilter) -> None:
        super().__init__(inner.conf)
        self.inner = inner

    def host_passes(self, host_state, spec_obj):
        """The inner filter's verdict on one host."""
        return self.inner.host_passes(host_state, spec_obj)


def fleet(hosts: int) -> HostTable:
    """A table of *hosts* of three sizes, partly used."""
    rng = random.Random(hosts)
    table = HostTable()
    for number in range(hosts):
        vcpus, ram_mb, disk_gb = SIZES[number % len(SIZES)]
        used = rng.random() * 0.8
        host = f"compute-{number:05d}"
        values = {
            "node_id": number + 1,
            "uuid": str(uuid.UUID(int=number + 1)),
            "cell_uuid": str(uuid.UUID(int=0)),
            "reported": True,
            "updated_at": NOW,
            "total_usable_ram_mb": ram_mb,
            "free_ram_mb": int(ram_mb * (1 - used)),
            "total_usable_disk_gb": disk_gb,
            "free_disk_mb": int(disk_gb * 1024 * (1 - used)),
            "vcpus_total": vcpus,
            "vcpus_used": int(vcpus * used),
            "cpu_allocation_ratio": 4.0,
            "ram_allocation_ratio": 1.0,
            "disk_allocation_ratio": 1.0,
            "supported_instances": '[["x86_64", "qemu", "hvm"]]',
        }
        table.put((host, host), values)
        table.set_service(host, {"host": host, "disabled": False, "forced_down": False}, NOW)
    return table


def request() -> objects.RequestSpec:
    """One small server."""
    flavor = objects.Flavor(
        name="m1.small", memory_mb=2048, vcpus=1, root_gb=20, ephemeral_gb=0, swap=0, extra_specs={}
    )
    return objects.RequestSpec(
        flavor=flavor, num_instances=1, instance_uuid=str(uuid.uuid4()), scheduler_hints={}
    )


def policy(conf: cfg.ConfigOpts, chain: FilterChain) -> Policy:
    """The default weighers behind *chain*."""
    return Policy(
        chain=chain,
        weighers=load_weighers(conf),
        host_subset_size=1,
        shuffle_best_same_weighed_hosts=False,
        service_down_time_seconds=60,
    )


def measure(table: HostTable, how: Policy, decisions: int) -> float:
    """Milliseconds per decision; what is consumed is given back."""
    books = Books(table)
    spec = request()
    began = time.perf_counter()
    for seed in range(decisions):
        record = DecisionRecord(None, (), 1, seed)
        decision = Decision(books, how, random.Random(seed), NOW, record)
        decision.place(spec.copy(), (), 1, 0)
        books.undo(decision.picks[0])
    return (time.perf_counter() - began) * 1000 / decisions


def main(argv: list[str] | None = None) -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--decisions", type=int, default=50, help="decisions per round, by columns")
    arguments = parser.parse_args(argv)
    conf = cfg.ConfigOpts()
    scheduler_conf.register_all(conf)
    conf([], project="nova")
    table = fleet(arguments.hosts)
    chain = load_chain(conf)
    by_columns = policy(conf, chain)
    by_rows = policy(conf, FilterChain([RowByRow(each) for each in chain.filters]))
    measure(table, by_columns, 3)
    columns_ms, rows_ms = [], []
    for _round in range(arguments.rounds):
        columns_ms.append(measure(table, by_columns, arguments.decisions))
        rows_ms.append(measure(table, by_rows, max(1, arguments.decisions // 50)))
    fast, slow = statistics.median(columns_ms), statistics.median(rows_ms)
    sys.stdout.write(
        f"hosts {arguments.hosts}  columns {fast:.3f} ms  row by row {slow:.1f} ms  "
        f"ratio {slow / fast:.0f}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
