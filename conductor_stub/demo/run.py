"""``make demo``: ask for the servers, watch them being built, judge and show the outcome."""

from __future__ import annotations

import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence

from oslo_log import log as logging
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Connection

from conductor_stub.booting import BootRequest, Placement, create_servers, image_of
from conductor_stub.conductor_rpcapi import ComputeTaskAPI
from conductor_stub.demo import render, stage
from conductor_stub.demo.scenario import (
    ACTIVE,
    ASKS,
    ERROR,
    GIANT,
    GIANT_MB,
    GROUP,
    REFUSED,
    UNLUCKY,
    Ask,
    Outcome,
    Server,
)
from conductor_stub.demo.stage import Stage
from conductor_stub.failure import ATTEMPTS_KEY
from conductor_stub.records import Order
from scheduler import exit_codes, objects
from scheduler.conf import startup
from scheduler.db import aggregates, compute_nodes, flavors, groups, instances
from scheduler.explain.record import DecisionRecord
from scheduler.rpc import transport
from scheduler.rpc.context import RequestContext

LOG = logging.getLogger(__name__)

PROGRAM = "nova-scheduler-demo"
DEADLINE_SECONDS = 45.0
POLL_SECONDS = 0.05


class Demo:
    """One run of the scenario on a *stage*."""

    def __init__(self, on: Stage, console: Console) -> None:
        self.stage = on
        self.console = console
        self.conductor = ComputeTaskAPI(transport.get_transport(on.conf))
        self.context = RequestContext(
            user_id="demo", project_id="demo", roles=["member"], is_admin=False
        )
        self.uuids: dict[str, str] = {}
        self.asked_at: dict[str, float] = {}
        self.ended_at: dict[str, float] = {}

    # --- asking --------------------------------------------------------------------------

    def prepare(self) -> None:
        """The flavor and the group that the scenario needs."""
        with self.stage.database.write() as connection:
            giant = objects.Flavor(
                name=GIANT,
                flavorid=GIANT,
                memory_mb=GIANT_MB,
                vcpus=2,
                root_gb=20,
                ephemeral_gb=0,
                swap=0,
                extra_specs={},
            )
            flavors.create(connection, giant)
            groups.create(connection, GROUP, "anti-affinity", user_id="demo", project_id="demo")

    def ask(self, ask: Ask) -> None:
        """Create the rows of the servers and call the conductor, as an API does."""
        if ask.name == UNLUCKY:
            self.stage.misfortune.strike()
        with self.stage.database.write() as connection:
            request = self._request(connection, ask)
            servers = [each.instance for each in create_servers(connection, request)]
        now = time.monotonic()
        for name, server in zip(ask.names, servers, strict=True):
            self.uuids[name] = server.uuid
            self.asked_at[server.uuid] = now
        order = Order(
            context=self.context,
            image=request.image,
            admin_password="",  # nosec B106
            injected_files=[],
            requested_networks=None,
            security_groups=["default"],
        )
        self.conductor.build_instances(order, servers, request.filter_properties())

    def _request(self, connection: Connection, ask: Ask) -> BootRequest:
        hints: dict[str, str | list[str]] = {}
        if ask.same_host_as:
            hints["same_host"] = self.uuids[ask.same_host_as]
        return BootRequest(
            name=ask.name,
            count=ask.count,
            flavor=flavors.get_by_name(connection, ask.flavor),
            image=image_of("cirros", {}),
            user_id="demo",
            project_id="demo",
            placement=Placement(zone=ask.zone),
            group=groups.get(connection, GROUP) if ask.in_group else None,
            hints=hints,
        )

    # --- watching ------------------------------------------------------------------------

    def play(self) -> None:
        """Ask for everything in order and wait until every server has ended one way or another."""
        with _progress(self.console) as progress:
            task = progress.add_task("servers ended", total=sum(ask.count for ask in ASKS))

            def show() -> None:
                progress.update(task, completed=len(self.ended_at))

            for ask in ASKS:
                if ask.after_all:
                    self._wait_for_all(show)
                progress.console.print(f"  boot {ask.count} × {ask.name} ({ask.flavor}): {ask.why}")
                self.ask(ask)
            self._wait_for_all(show)

    def _wait_for_all(self, show: Callable[[], None]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(self.ended_at) < len(self.uuids) and time.monotonic() < deadline:
            with self.stage.database.read() as connection:
                states = {each.uuid: each.vm_state for each in instances.list_all(connection)}
            for uuid in self.uuids.values():
                if states.get(uuid) in (ACTIVE, ERROR):
                    self.ended_at.setdefault(uuid, time.monotonic())
            show()
            time.sleep(POLL_SECONDS)

    # --- judging -------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """What the database says at the end, with the times measured here."""
        with self.stage.database.read() as connection:
            known = {each.uuid: each for each in instances.list_all(connection)}
            faults = instances.latest_faults(connection, list(known))
            found = [
                self._server(
                    name,
                    known[uuid],
                    instances.get_system_metadata(connection, uuid),
                    faults[uuid].message if uuid in faults else None,
                )
                for name, uuid in self.uuids.items()
            ]
            zones = {
                host: each.metadata["availability_zone"]
                for each in aggregates.list_all(connection)
                if "availability_zone" in each.metadata
                for host in each.hosts
            }
        memory = self.memory()
        summed = dict.fromkeys(memory, self.stage.conf.reserved_host_memory_mb)
        for instance in known.values():
            if instance.host:
                summed[instance.host] += instance.memory_mb
        reported = {host: used for host, (used, _total) in memory.items()}
        return Outcome({each.name: each for each in found}, zones, reported, summed)

    def _server(
        self,
        name: str,
        instance: objects.Instance,
        system_metadata: dict[str, str | None],
        fault: str | None,
    ) -> Server:
        record = self.decision_on(instance.uuid)
        ended_at = self.ended_at.get(instance.uuid, time.monotonic())
        return Server(
            name=name,
            uuid=instance.uuid,
            flavor=instance.flavor.name,
            state=instance.vm_state,
            host=instance.host,
            zone=instance.availability_zone,
            attempts=int(system_metadata.get(ATTEMPTS_KEY) or 0),
            decision_ms=record.elapsed_ms if record else None,
            total_ms=(ended_at - self.asked_at[instance.uuid]) * 1000,
            fault=fault,
        )

    def decision_on(self, uuid: str) -> DecisionRecord | None:
        """The scheduler's record of the decision on a server."""
        records = self.stage.scheduler.driver.records
        return next((each for each in records if uuid in each.instance_uuids), None)

    def memory(self) -> dict[str, tuple[int, int]]:
        """Per host the memory that is used and all there is, in MB, as its row says."""
        with self.stage.database.read() as connection:
            nodes = compute_nodes.list_all(connection)
        return {each.host: (each.memory_mb_used, each.memory_mb) for each in nodes}


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


def main(argv: Sequence[str]) -> int:
    """Run the demo; 0 only if everything came out as it must."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="nova-scheduler-demo-") as name:
        configuration = stage.write_configuration(pathlib.Path(name))
        transport.set_defaults()
        conf = startup.parse(["--config-file", str(configuration), *argv], PROGRAM)
        with stage.started(conf) as on:
            try:
                return _show(Demo(on, console), console)
            except Exception:
                LOG.exception("The demo broke off")
                console.print_exception()  # the log goes with the folder
                return exit_codes.FAILURE


def _show(demo: Demo, console: Console) -> int:
    demo.prepare()
    before = demo.memory()
    console.print(
        f"A scheduler, a conductor and {len(before)} compute hosts run in this process, "
        "on the in-process bus and SQLite."
    )
    demo.play()
    outcome = demo.outcome()
    after = demo.memory()
    console.print(render.servers(outcome))
    console.print(
        render.bars(
            {host: total for host, (_used, total) in after.items()},
            {host: used for host, (used, _total) in before.items()},
            {host: used for host, (used, _total) in after.items()},
        )
    )
    refused = demo.decision_on(outcome.servers[REFUSED].uuid)
    if refused is not None:
        console.print(render.refusal(REFUSED, refused))
    return 0 if render.verdict(outcome, console) else 1
