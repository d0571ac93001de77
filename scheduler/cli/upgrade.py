"""``upgrade check``: whether this release can take over, before the services are restarted."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
from oslo_upgradecheck.upgradecheck import UPGRADE_CHECK_MSG_MAP, Code, Result

from scheduler import errors, exit_codes, nova_compat, objects
from scheduler.broker import connecting, expected, looking
from scheduler.claims import loading
from scheduler.cli import command, status
from scheduler.conf import names, startup
from scheduler.daemon.service import BINARY, build_manager
from scheduler.db import compute_nodes, inspection, services
from scheduler.db.database import FAILURES, Database
from scheduler.db.databases import Databases
from scheduler.rpc import transport

LOG = logging.getLogger(__name__)

COLUMNS = ("Check", "Result", "Details")
BROKER_SECONDS = 10
NAMES_SHOWN = 10
USAGE_COLUMNS = ("free_ram_mb", "free_disk_gb")

SUCCESS = Result(Code.SUCCESS)


class Checks:
    """What is looked at; *cells* are the databases that have compute hosts, by cell."""

    def __init__(
        self, conf: cfg.ConfigOpts, databases: Databases, cells: Callable[[], dict[str, Database]]
    ) -> None:
        self._conf = conf
        self._databases = databases
        self._cells = cells

    def all(self) -> Iterator[tuple[str, Result]]:
        """Every check by name, and what it found."""
        databases = _done(self.databases, self._databases.main)
        yield "Databases", databases
        for name, check in (
            ("Claims", self.claims),
            ("Message broker", self.broker),
            ("Driver, filters and weighers", self.parts),
            ("Deprecated options", self.options),
        ):
            yield name, _done(check, self._databases.main)
        if databases.code is Code.FAILURE:
            return  # what would be looked at is in them
        yield "Schedulers", _done(self.schedulers, self._databases.main)
        yield "Compute hosts", _done(self.computes, self._databases.main)

    def databases(self) -> Result:
        """Each answers and has its tables at the revision that this release needs."""
        for finding in inspection.configured(self._databases):
            if finding.failure is not None:
                return Result(Code.FAILURE, str(finding.failure))
        lost = [each.line() for each in inspection.cells(self._databases) if each.failure]
        return Result(Code.WARNING, _shown(lost)) if lost else SUCCESS

    def claims(self) -> Result:
        """What ``[scheduler] claims`` needs is there."""
        loading.settle(self._conf, self._databases.main)
        loading.backend_from_conf(self._conf, self._databases.main).check_ready()
        return SUCCESS

    def broker(self) -> Result:
        """At least one broker can be used, and nothing on it is declared otherwise than here."""
        if transport.is_in_process(self._conf):
            return Result(Code.WARNING, "the message bus is the one inside each process")
        wanted = expected.of_conf(self._conf)
        lost, different = [], None
        for node in wanted.nodes:
            try:
                with connecting.connect(node, BROKER_SECONDS) as connection:
                    different = different or _different(connection, wanted)
            except connecting.Failure as failure:
                lost.append(f"{node.name}: {failure.trouble.value}: {failure}")
        if different or len(lost) == len(wanted.nodes):
            return Result(Code.FAILURE, different or _shown(lost))
        return Result(Code.WARNING, _shown(lost)) if lost else SUCCESS

    def parts(self) -> Result:
        """Everything that the configuration names can be loaded."""
        if self._conf.scheduler.nova_compat_imports:
            nova_compat.install(self._conf)
        build_manager(self._conf, self._databases)
        return SUCCESS

    def options(self) -> Result:
        """No option is set under a name that a later release may not know."""
        old = names.under_old_names(self._conf, startup.used_files(self._conf))
        used = sorted(f"[{group}] {name}" for group, name in old)
        if not used:
            return SUCCESS
        return Result(Code.WARNING, f"set under an old name: {_shown(used)}")

    def schedulers(self) -> Result:
        """A scheduler has shown lately that it lives, or none was ever there."""
        with self._databases.main.read() as connection:
            known = services.list_all(connection, BINARY)
        if known and not any(self._is_up(each) for each in known):
            silent = _shown(sorted(each.host for each in known))
            return Result(Code.WARNING, f"no scheduler sends heartbeats: {silent}")
        return SUCCESS

    def computes(self) -> Result:
        """Every compute node has its service, and has reported what is used on it."""
        orphans: list[str] = []
        unreported: list[str] = []
        for database in self._cells().values():
            with database.read() as connection:
                nodes = compute_nodes.list_all(connection)
                hosts = {
                    each.host for each in services.list_all(connection, services.COMPUTE_BINARY)
                }
            orphans += [_name(node) for node in nodes if node.host not in hosts]
            unreported += [_name(node) for node in nodes if _is_unreported(node)]
        found = []
        if orphans:
            found.append(f"without a service, and so never chosen: {_shown(sorted(orphans))}")
        if unreported:
            found.append(f"usage not reported yet: {_shown(sorted(unreported))}")
        return Result(Code.WARNING, "; ".join(found)) if found else SUCCESS

    def _is_up(self, service: objects.Service) -> bool:
        return status.state(service, self._conf) == "up"


class Check(command.List):
    """Say whether this release can work with the configuration and what is there.

    Run it with the new release, before its services are started. Exit status: 0 all is well, 1 a
    warning, 2 something stops the upgrade, 255 an error nobody expected.
    """

    needs_tables = False

    def take_action(
        self,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - cliff passes it
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """One row per check."""
        checks = Checks(self.conf, self.databases, lambda: self.cells)
        results = list(checks.all())
        self._code = max(result.code for _name, result in results)
        return COLUMNS, [
            (name, str(UPGRADE_CHECK_MSG_MAP[result.code]), result.details)
            for name, result in results
        ]

    def run(self, parsed_args: argparse.Namespace) -> int:
        """The status is the worst result."""
        self._code = Code.SUCCESS
        try:
            return super().run(parsed_args) or int(self._code)
        except Exception:
            LOG.exception("The check itself failed")
            return exit_codes.UPGRADE_ERROR


def _done(check: Callable[[], Result], database: Database) -> Result:
    """What *check* found; what it cannot get past is a failure."""
    try:
        return check()
    except errors.NovaException as error:
        return Result(Code.FAILURE, str(error))
    except FAILURES as error:
        return Result(Code.FAILURE, str(database.unusable(error)))


def _different(connection: Any, wanted: expected.Expected) -> str | None:
    sights = [
        *(looking.at_exchange(connection, each) for each in wanted.exchanges),
        *(looking.at_queue(connection, each) for each in wanted.queues),
    ]
    for sight in sights:
        if sight.state in (looking.DIFFERENT, looking.FORBIDDEN):
            return f"{sight.kind} {sight.name}: {sight.detail}"
    return None


def _is_unreported(node: objects.ComputeNode) -> bool:
    return any(getattr(node, column) is None for column in USAGE_COLUMNS)


def _name(node: objects.ComputeNode) -> str:
    if node.hypervisor_hostname in (None, node.host):
        return str(node.host)
    return f"{node.host} ({node.hypervisor_hostname})"


def _shown(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
