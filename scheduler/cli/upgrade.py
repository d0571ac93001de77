"""``upgrade check``: whether this release can take over, before the services are restarted."""

import argparse
from collections.abc import Callable, Sequence

from oslo_log import log as logging
from oslo_upgradecheck.upgradecheck import UPGRADE_CHECK_MSG_MAP, Code, Result

from scheduler import broker, errors, exit_codes
from scheduler.claims import loading
from scheduler.cli import command
from scheduler.cli.command import Table
from scheduler.conf import names, startup
from scheduler.daemon.service import build_manager
from scheduler.db import inspection
from scheduler.db.database import FAILURES
from scheduler.rpc import transport

LOG = logging.getLogger(__name__)

COLUMNS = ("Check", "Result", "Details")
BROKER_SECONDS = 10
NAMES_SHOWN = 10
UNUSABLE = (broker.DIFFERENT, broker.FORBIDDEN)

SUCCESS = Result(Code.SUCCESS)


class Check(command.List):
    """Say whether this release can work with the configuration and what is there.

    Run it with the new release, before its services are started. Exit status: 0 all is well, 1 a
    warning, 2 something stops the upgrade, 255 an error nobody expected.
    """

    nothing = "There is nothing to check."

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """One row per check; the status is the worst."""
        checks = {
            "Databases": self.check_databases,
            "Claims": self.check_claims,
            "Message broker": self.check_broker,
            "Driver, filters and weighers": self.check_parts,
            "Deprecated options": self.check_options,
        }
        results = {name: self._done(check) for name, check in checks.items()}
        self.status = int(max(each.code for each in results.values()))
        return COLUMNS, [
            (name, str(UPGRADE_CHECK_MSG_MAP[each.code]), each.details or "")
            for name, each in results.items()
        ]

    def run(self, parsed_args: argparse.Namespace) -> int:
        """As any command, also if a check itself fails."""
        try:
            return super().run(parsed_args)
        except Exception:
            LOG.exception("The check itself failed")
            return exit_codes.UPGRADE_ERROR

    def _done(self, check: Callable[[], Result]) -> Result:
        """Run *check*; what it cannot get past is a failure."""
        try:
            return check()
        except (errors.NovaException, *FAILURES) as error:
            return Result(Code.FAILURE, self._line(self.database.unusable(error)))

    def check_databases(self) -> Result:
        """Each answers and has its tables at the revision that this release needs."""
        for finding in inspection.configured(self.databases):
            if finding.failure is not None:
                return Result(Code.FAILURE, self._line(finding.failure))
        lost = [each.line() for each in inspection.cells(self.databases) if each.failure]
        return _warning("", lost)

    def check_claims(self) -> Result:
        """Check that everything is there that ``[scheduler] claims`` needs."""
        loading.settle(self.conf, self.databases.main)
        loading.check_ready(self.conf, self.databases.main)
        return SUCCESS

    def check_broker(self) -> Result:
        """At least one broker can be used, and nothing on it is declared otherwise than here."""
        if transport.is_in_process(self.conf):
            return Result(Code.WARNING, "the message bus is the one inside each process")
        lost, different, reached = [], list[str](), 0
        for connection, failure in broker.connect_all(self.conf, BROKER_SECONDS):
            if failure is not None:
                lost.append(f"{broker.name_of(connection)}: {failure.state}: {failure}")
                continue
            sights = [broker.look_at(connection, each) for each in broker.declared(self.conf)]
            wrong = [each for each in sights if each.state in UNUSABLE]
            different = different or [f"{each.kind} {each.name}: {each.detail}" for each in wrong]
            reached += 1
        if different or not reached:
            return Result(Code.FAILURE, _shown(different or lost))
        return _warning("", lost)

    def check_parts(self) -> Result:
        """Everything that the configuration names can be loaded."""
        build_manager(self.conf, self.databases)
        return SUCCESS

    def check_options(self) -> Result:
        """No option is set under a name that a later release may not know."""
        old = names.under_old_names(self.conf, startup.used_files(self.conf))
        used = sorted(f"[{group}] {name}" for group, name in old)
        return _warning("set under an old name: ", used)


def _warning(text: str, names: Sequence[str]) -> Result:
    return Result(Code.WARNING, f"{text}{_shown(sorted(names))}") if names else SUCCESS


def _shown(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
